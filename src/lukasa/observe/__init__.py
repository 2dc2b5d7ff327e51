"""Find what is worth remembering in a session. Pure: texts in, cleaned texts and observations out."""
