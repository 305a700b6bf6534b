"""Memory that two processes share, and where tensors lie in it."""
