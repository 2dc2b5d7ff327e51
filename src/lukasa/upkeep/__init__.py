"""Upkeep: what should become of entries that are there. Pure decisions; the service fetches, asks and commits.

weighed     an entry with its present relevance, which all decisions start from
likeness    which entries say the same, and which are about the same
moves       pruning, the cap, growing stale and being forgotten
promotion   who has earned a longer life, another kind or a broader tier
writing     one entry out of several: by rules, or from a model's answer
"""
