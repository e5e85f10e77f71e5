"""The assignors of groups (KIP-848, KIP-932): Kafka's results, partition by partition.

The order of Java's hash tables decides which member gets which partition, so it is modelled here.
"""
