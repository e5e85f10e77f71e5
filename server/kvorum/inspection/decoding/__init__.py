"""Every kind of file that Kafka writes into a log directory, as JSON objects."""
