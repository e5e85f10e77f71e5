"""Kafka's metadata log directory on disk: segments, indexes, snapshots, small files, recovery."""
