"""The counts of one share group's dead letters (the meters of Kafka's ShareGroupMetrics)."""

from dataclasses import dataclass


@dataclass(slots=True)
class DeadLetterMetrics:
    """The counts of a group since its first dead letter on this broker."""

    written_record_count: int = 0
    """The offsets whose letters are in the queue."""
    produce_count: int = 0
    """The batches that were sent to the queue's leaders, repeated ones included."""
    failed_produce_count: int = 0
    """The batches that were given up after they were sent."""
