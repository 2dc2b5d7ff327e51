"""Upkeep: pure decisions about stored entries. The service fetches, asks models and commits.

weighed     an entry with its present relevance; groups of entries that say the same or are about one thing
promotion   entries that get a longer lifetime, another kind or a broader tier; pruning, the cap, ageing
digest      one entry made of several: by rules, or from a model's answer
scrub       the extent of a scrub, its manifest and its confirmation
"""
