"""Every message of Kafka, one module an API or record; import what is needed."""
