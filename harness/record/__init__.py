"""Shapes of records: kinds of values, and the fields of a result that others read."""
