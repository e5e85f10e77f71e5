"""A small admin client for the commands that ask a running cluster, with Kafka's texts."""
