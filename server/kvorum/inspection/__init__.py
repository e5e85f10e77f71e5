"""What the files of any Kafka say, and whether they are sound, without a running node."""
