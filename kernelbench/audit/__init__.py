"""What a problem is worth: how well its check tells right from wrong."""
