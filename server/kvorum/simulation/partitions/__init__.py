"""A world of brokers that lead and follow; `tests/model/simulation/test_partitions.py` runs it.

The brokers' replicas are the real ones: partitions, leaders, fetchers, and logs on disks that fail.
So is the controller, behind a network that delays and loses messages. The quorum beneath it is only
imitated; `kvorum.simulation` itself runs the real one.
"""
