"""The reference of an evaluation: called, checked and timed in the judge's process."""
