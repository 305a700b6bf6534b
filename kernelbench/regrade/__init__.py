"""Claims of others against measurements made here: what was claimed, what was found, and why they differ."""
