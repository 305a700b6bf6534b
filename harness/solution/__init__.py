"""Solutions: discover files, map each to a problem, find the files that each includes or imports."""
