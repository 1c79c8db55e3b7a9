"""Multi-process runs: `wire` is the TCP protocol, `hub` the coordinator, `member` its client in each process.

`token` is the shared secret, `cluster` detects ranks and addresses from the environment, `launch_order` is the hub's
record of launches, and `processes` is the engine's side. A "world" is the set of processes that share one hub.
"""
