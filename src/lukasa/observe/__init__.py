"""Turning what was said into what is worth remembering. Pure: texts in, cleaned texts and observations out."""
