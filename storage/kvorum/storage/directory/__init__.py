"""The log directories of a broker, and the logs in them (Kafka's LogManager)."""
