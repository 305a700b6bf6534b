"""Tensors: element types, the leaves of outputs, the order of dimensions in memory."""
