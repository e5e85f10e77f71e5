"""The part that groups of the consumer and share protocols have in common (Kafka's ModernGroup)."""
