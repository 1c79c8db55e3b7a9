"""Multi-process runs: `wire` is the TCP protocol, `hub` is the coordinator, and `member` is its client in each process.

`token` is the shared secret, `cluster_detection` reads ranks and addresses from the environment, `launch_order` is the
hub's record of launches, and `processes` connects all of this to the engine. A "world" is the set of processes that
share one hub.
"""
