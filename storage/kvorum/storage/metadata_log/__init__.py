"""The metadata log (Kafka's KafkaRaftLog): its start, its snapshots, its retention."""
