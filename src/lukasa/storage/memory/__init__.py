"""A store in plain dictionaries, which is the reference for every other backend."""
