"""Primitives that hold a program: called, chosen, repeated, recomputed, given its own derivative, run per device."""
