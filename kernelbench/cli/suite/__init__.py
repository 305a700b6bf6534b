"""Commands about problems and sources."""
