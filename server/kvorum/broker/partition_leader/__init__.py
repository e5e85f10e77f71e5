"""What the leader of a partition does about the ISR (KIP-497, KIP-841, KIP-903). Pure.

`PartitionLeader` decides for one partition, `AlterPartitionQueue` talks to the controller for all
of a broker's partitions.
"""
