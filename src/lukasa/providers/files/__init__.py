"""Files that people may read and keep: the curated document under git, the structured log, decision records."""
