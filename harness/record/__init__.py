"""What a record may hold: kinds of values, and the fields of a result that others read."""
