"""Messages that are kvorum's own, not Kafka's."""
