"""A small admin client for commands that talk to a running cluster, with Kafka's messages."""
