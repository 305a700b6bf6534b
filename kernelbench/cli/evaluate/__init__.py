"""Commands that evaluate solutions or time references."""
