"""Hygiene: deciding what may be removed for good. Pure functions of values."""
