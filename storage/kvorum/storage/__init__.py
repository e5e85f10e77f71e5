"""Kafka's log directories on disk: logs, snapshots, small files, compaction, recovery."""
