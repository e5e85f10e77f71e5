"""Compaction of topics' logs (Kafka's LogCleaner and Cleaner)."""
