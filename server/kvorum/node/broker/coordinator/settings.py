"""The settings of a coordinator on a broker."""

from dataclasses import dataclass
from typing import Final

from kvorum.wire.records import Compression

FIRST_SEQUENCE: Final = 0
"""Kafka numbers the batches of groups and share partitions although no producer writes them."""
LEADER_ONLY: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorSettings:
    """The internal topic of a coordinator, and how it writes to it."""

    topic: str
    partition_count: int
    """The partitions that the topic will have; where it exists it has its own count."""
    compression: Compression
    required_acks: int
    """For an append to be begun. Its commit is waited for in any case, by the high watermark."""
    base_sequence: int
    """The sequence number of every batch."""
    commit_timeout_ms: int
    """The time after which a write that is not committed is answered with an error."""
    append_linger_ms: int
    """The time for which a batch waits for more operations; -1 is a turn of the event loop."""
    loads_in_each_epoch: bool = False
    """Whether a leader loads its partition again in a higher epoch, and does not keep the shard."""
