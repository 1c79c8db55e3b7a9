"""Transformations: forward mode, linearization, transposition, batching, and the public derivatives."""
