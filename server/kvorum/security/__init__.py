"""Who may come in: TLS out of Kafka's keys, and the users of certificates."""
