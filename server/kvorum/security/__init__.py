"""The admission of clients: TLS and SASL out of Kafka's keys, and the users of certificates."""
