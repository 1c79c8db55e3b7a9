"""Primitives that hold programs: calls, branches, loops, remat, custom derivatives and `shard_map`."""
