"""Processes: start them, talk to them, confine them, and wait with a deadline."""
