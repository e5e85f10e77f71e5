"""A small world of brokers that lead partitions, with the real controller over a lossy network.

The quorum beneath the controller is only played: `kvorum.simulation` proper is where it is real.
"""
