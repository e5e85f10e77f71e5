"""The ISR as the leader of a partition manages it (KIP-497, KIP-841, KIP-903).

`PartitionLeader` decides for one partition. `AlterPartitionManager`
sends requests to the controller for all partitions of a broker. Both are pure.
"""
