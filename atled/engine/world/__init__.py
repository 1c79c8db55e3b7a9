"""Several processes as one world: `wire` speaks TCP, a `hub` knows all, each process has a `member` of it.

`token` is the secret that they share, `cluster` finds out who and where the others are, `launch_order` is what the hub
knows of launches, and `processes` is this process among the others.
"""
