"""A library for users until the data plane stands on it: how a partition leader manages the ISR.

`PartitionLeader` decides for one partition (KIP-497, KIP-841, KIP-903). `AlterPartitionManager`
sends requests to the controller for all partitions of a broker. Both are pure.
"""
