"""The files of any Kafka without a running node: what they say, and whether they are sound."""
