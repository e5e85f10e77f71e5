"""The settings of a coordinator on a broker."""

from dataclasses import dataclass

from kvorum.wire.records import Compression


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorSettings:
    """The internal topic of a coordinator, and how it writes to it."""

    topic: str
    partition_count: int
    """The partitions that the topic will have; where it exists it has its own count."""
    compression: Compression
    commit_timeout_ms: int
    """The time after which a write that is not committed is answered with an error."""
