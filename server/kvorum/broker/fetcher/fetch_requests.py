"""A follower's requests to a leader, in the versions that the metadata version stands for."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Annotated, Final, NamedTuple

from kvorum.broker.fetcher.partition_fetch_state import PartitionFetchState
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
        log_start_offset=state.partition.log.local_log.log_start_offset,
        partition_max_bytes=settings.bytes_max,
    )


def list_offsets_request(
    states: Sequence[PartitionFetchState], timestamp: int, *, broker_id: int
) -> ListOffsetsRequest:
    """Return the request for one offset of each partition's leader."""
    in_order = sorted(states, key=_topic)
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
            for topic, of_topic in groupby(in_order, key=_topic)
        ],
    )


def _topic(state: PartitionFetchState) -> str:
    return state.partition.topic_partition.topic
