"""Source text to typed program: grammar, words, expressions, and messages."""
