"""What is kept for people to read: the curated document, the log, decision records. Pure functions of text."""
