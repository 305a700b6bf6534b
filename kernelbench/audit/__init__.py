"""Audit: how well the check of a problem tells right from wrong."""
