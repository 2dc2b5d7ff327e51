"""Files for people to read: the curated document under git, the structured log, decision records."""
