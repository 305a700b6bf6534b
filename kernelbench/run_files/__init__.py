"""Files of a run directory: its logs, sources, and what was not evaluated."""
