"""A partition as a fetch uses it: a `Partition` of a topic, or the `MetadataTopic`."""

from typing import Protocol

from kvorum.broker.epoch_end_offset import NO_EPOCH
from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.broker.log_read import LogReadInfo
from kvorum.broker.partition_leader.replica_state import FollowerFetch
from kvorum.broker.read_ahead import ReadAhead
from kvorum.node.broker.purgatories import WatchedPartition
from kvorum.storage.topic_partition import TopicPartition


class ReadablePartition(WatchedPartition, Protocol):
    """A partition that answers reads, and says how much there is to read."""

    @property
    def topic_partition(self) -> TopicPartition:
        """The name of the partition."""
        ...

    @property
    def topic_id(self) -> bytes:
        """The id of the topic."""
        ...

    @property
    def leader_epoch(self) -> int:
        """The leader epoch; it changes with the leader."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads the partition."""
        ...

    def bytes_available(
        self, offset: int, max_bytes: int, /, *, isolation: IsolationLevel | None, wanted: int
    ) -> int | None:
        """Return how many bytes there are for a fetch, None if it must not wait at this offset.

        More than `wanted` bytes need not be counted. Without an isolation a replica fetches.
        """
        ...

    def fetch_records(
        self,
        offset: int,
        max_bytes: int,
        /,
        *,
        isolation: IsolationLevel,
        leader_epoch: int,
        last_fetched_epoch: int = NO_EPOCH,
        is_leader_needed: bool = True,
        ahead: ReadAhead | None = None,
    ) -> LogReadInfo:
        """Read for a consumer; raises LeaderRefusesError and StorageError."""
        ...

    def fetch_records_of_follower(
        self,
        fetch: FollowerFetch,
        max_bytes: int,
        /,
        *,
        last_fetched_epoch: int,
        now_ms: float | None,
        ahead: ReadAhead | None = None,
    ) -> LogReadInfo:
        """Read for a follower; raises LeaderRefusesError and StorageError.

        `now_ms` is None where the same fetch is read again.
        """
        ...

    def fetch_offset_snapshot(self, leader_epoch: int, /) -> LogReadInfo:
        """Return the offsets for a consumer that reads elsewhere; raises LeaderRefusesError."""
        ...
