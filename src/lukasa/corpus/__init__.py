"""Documents to look things up in: how a document becomes passages. Pure functions of values."""
