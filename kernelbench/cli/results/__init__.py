"""Commands that show runs, compare them, or convert them."""
