"""The small files of a node, of a log directory and of a partition, in Kafka's formats."""
