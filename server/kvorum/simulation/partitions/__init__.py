"""A world of brokers that lead and follow; `tests/model/simulation/test_partitions.py` runs it.

The brokers' replicas are the real ones: partitions, leaders, fetchers, and logs on disks that fail.
So are the controllers and their quorum, which is a world of `kvorum.simulation` with shorter times;
each broker has a replica of the metadata log, and reads its metadata from there.
"""
