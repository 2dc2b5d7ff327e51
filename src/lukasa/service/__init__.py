"""The verbs: each fetches, lets the pure paths decide, and applies what they decided."""
