"""Texts for people to read: the curated document, the structured log, decision records. Pure functions of text."""
