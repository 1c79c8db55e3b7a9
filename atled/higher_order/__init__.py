"""Primitives that hold programs: calls, branches, loops, remat, custom derivatives, per-device programs."""
