"""Brokers that lead and follow, in a world; `tests/model/simulation/test_partitions.py` runs it.

The brokers' replicas are the real ones: partitions, leaders, fetchers, and logs on disks that fail.
Each broker is an observer of the quorum: it reads its metadata from its own replica of the log.
"""
