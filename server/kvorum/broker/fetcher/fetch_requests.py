"""A follower's progress in fetching a partition, and its requests, in the leader's versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Annotated, Final, NamedTuple, Self

from kvorum.broker.epoch_end_offset import NO_EPOCH
from kvorum.broker.partition import Partition
from kvorum.metadata.metadata_version import MINIMUM_METADATA_VERSION, MetadataVersion
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.list_offsets import ListOffsetsRequest

NO_SESSION: Final = (0, -1)
"""The session id and epoch of a full fetch that wants no session."""
FIRST_VERSION_WITH_REPLICA_STATE: Final = 15
_FETCH_VERSIONS: Final = (
    (MetadataVersion.V4_1_IV1, 18),
    (MetadataVersion.V3_9_IV0, 17),
    (MetadataVersion.V3_7_IV4, 16),
    (MetadataVersion.V3_5_IV1, 15),
    (MetadataVersion.V3_5_IV0, 14),
    (MINIMUM_METADATA_VERSION, 13),
)
_LIST_OFFSETS_VERSIONS: Final = (
    (MetadataVersion.V4_2_IV1, 11),
    (MetadataVersion.V4_0_IV3, 10),
    (MetadataVersion.V3_9_IV0, 9),
    (MetadataVersion.V3_5_IV0, 8),
    (MINIMUM_METADATA_VERSION, 7),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFetchState:
    """The next offset to fetch, the leader epoch to fetch in, and when to go on after an error.

    `last_fetched_epoch` is the epoch of the last record, -1 without one. `must_truncate` means that
    the log knows no epoch: before the first fetch, it is truncated to the high watermark.
    `is_truncating` means that a truncation is under way, after which the log ends elsewhere. `lag`
    is how far behind the leader's high watermark the last fetch has left the log, None without one.
    """

    partition: Partition
    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    must_truncate: bool = False
    is_truncating: bool = False
    due_ms: float = 0.0
    lag: int | None = None

    @property
    def is_replica_in_sync(self) -> bool:
        """Whether the log was as long as what is committed after the last fetch."""
        return self.lag is not None and self.lag <= 0

    def is_ready(self, now_ms: float) -> bool:
        """Return whether the partition may be fetched.

        The offset of a fetch tells the leader what this replica has, so what was appended has to be
        stored before.
        """
        is_stored = not self.partition.log.writes.is_behind
        is_truncated = not self.must_truncate and not self.is_truncating
        return is_truncated and self.due_ms <= now_ms and is_stored

    def is_same_fetch(self, asked: PartitionFetchState) -> bool:
        """Return whether a fetch of the state `asked` is still the one that this state needs."""
        return (self.fetch_offset, self.leader_epoch) == (asked.fetch_offset, asked.leader_epoch)

    def at_end_of_log(self) -> Self:
        """Return the state after a truncation, or another change of the log."""
        log = self.partition.log.local_log
        return replace(
            self,
            fetch_offset=log.log_end_offset,
            last_fetched_epoch=NO_EPOCH if log.latest_epoch is None else log.latest_epoch,
            must_truncate=False,
            is_truncating=False,
        )

    def behind(self, last_epoch: int | None, high_watermark: int) -> Self:
        """Return the state after an append; without a record the last epoch stays as it is.

        `high_watermark` is the leader's.
        """
        end_offset = self.partition.log.log_end_offset
        return replace(
            self,
            fetch_offset=end_offset,
            lag=max(high_watermark - end_offset, 0),
            last_fetched_epoch=self.last_fetched_epoch if last_epoch is None else last_epoch,
        )


def initial_fetch_state(partition: Partition, leader_epoch: int) -> PartitionFetchState:
    """Return the state of a partition whose leader is new.

    A log that knows epochs is fetched from its end on: the leader finds where the two diverge.
    """
    log = partition.log
    epoch = log.local_log.latest_epoch
    must_truncate = epoch is None
    return PartitionFetchState(
        partition=partition,
        leader_epoch=leader_epoch,
        fetch_offset=log.high_watermark if must_truncate else log.log_end_offset,
        last_fetched_epoch=NO_EPOCH if epoch is None else epoch,
        must_truncate=must_truncate,
    )


class FetcherSettings(NamedTuple):
    """The id of the follower, and ``replica.fetch.*``."""

    broker_id: Annotated[int, "node.id"]
    wait_ms_max: Annotated[int, "replica.fetch.wait.max.ms"] = 500
    bytes_min: Annotated[int, "replica.fetch.min.bytes"] = 1
    bytes_max: Annotated[int, "replica.fetch.max.bytes"] = 1_048_576
    response_bytes_max: Annotated[int, "replica.fetch.response.max.bytes"] = 10_485_760
    backoff_ms: Annotated[int, "replica.fetch.backoff.ms"] = 1_000


def fetch_version(metadata_version: MetadataVersion) -> int:
    """Return the version in which followers fetch."""
    return next(version for first, version in _FETCH_VERSIONS if metadata_version >= first)


def list_offsets_version(metadata_version: MetadataVersion) -> int:
    """Return the version in which followers ask for a leader's offsets."""
    return next(version for first, version in _LIST_OFFSETS_VERSIONS if metadata_version >= first)


def fetch_request(
    states: Iterable[PartitionFetchState],
    settings: FetcherSettings,
    *,
    version: int,
    broker_epoch: int,
) -> FetchRequest:
    """Return the request for partitions in their order, grouped where neighbours share a topic."""
    has_state = version >= FIRST_VERSION_WITH_REPLICA_STATE
    session_id, session_epoch = NO_SESSION
    return FetchRequest(
        replica_id=-1 if has_state else settings.broker_id,
        replica_state=FetchRequest.ReplicaState(settings.broker_id, broker_epoch)
        if has_state
        else FetchRequest.ReplicaState(),
        max_wait_ms=settings.wait_ms_max,
        min_bytes=settings.bytes_min,
        max_bytes=settings.response_bytes_max,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[
            FetchRequest.FetchTopic(
                topic_id=topic_id, partitions=[_fetch_partition(one, settings) for one in of_topic]
            )
            for topic_id, of_topic in groupby(states, key=lambda one: one.partition.topic_id)
        ],
    )


def _fetch_partition(
    state: PartitionFetchState, settings: FetcherSettings
) -> FetchRequest.FetchPartition:
    return FetchRequest.FetchPartition(
        partition=state.partition.topic_partition.partition,
        current_leader_epoch=state.leader_epoch,
        fetch_offset=state.fetch_offset,
        last_fetched_epoch=state.last_fetched_epoch,
        log_start_offset=state.partition.log.log_start_offset,
        partition_max_bytes=settings.bytes_max,
    )


def list_offsets_request(
    states: Sequence[PartitionFetchState], timestamp: int, *, broker_id: int
) -> ListOffsetsRequest:
    """Return the request for one offset of each partition's leader."""
    return ListOffsetsRequest(
        replica_id=broker_id,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(
                        one.partition.topic_partition.partition, one.leader_epoch, timestamp
                    )
                    for one in of_topic
                ],
            )
            for topic, of_topic in groupby(sorted(states, key=_topic), key=_topic)
        ],
    )


def _topic(state: PartitionFetchState) -> str:
    return state.partition.topic_partition.topic
