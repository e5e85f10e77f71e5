"""A world of brokers that lead partitions, run by tests: `tests/simulation/test_partitions.py`.

The controller is the real one, behind a network that delays and loses messages. The quorum beneath
it is only imitated; `kvorum.simulation` itself runs the real one.
"""
