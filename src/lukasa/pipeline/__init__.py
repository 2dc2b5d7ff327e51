"""Background work that loses nothing and repeats nothing: jobs, their journals, and who works on them when."""
