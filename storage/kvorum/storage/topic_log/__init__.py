"""The log of a topic's partition (Kafka's UnifiedLog): appends, reads, retention."""
