"""A fetch from several partitions as it is asked for, in the terms of the request."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from kvorum.broker.epoch_end_offset import NO_EPOCH
from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.node.broker.readable_partition import ReadablePartition
from kvorum.wire.uuid_text import ZERO_UUID


class PartitionFetch(NamedTuple):
    """A partition that a client requests, in the terms of the request."""

    partition: ReadablePartition
    offset: int
    max_bytes: int
    current_leader_epoch: int
    last_fetched_epoch: int = NO_EPOCH
    log_start_offset: int = -1
    topic_id: bytes = ZERO_UUID
    """The id of the topic, where the request or its session has one."""


class FetchingReplica(NamedTuple):
    """The broker that fetches as a follower; its epoch is -1 where the request has none."""

    broker_id: int
    broker_epoch: int


PreferredReadReplica: TypeAlias = Callable[[ReadablePartition, int], int | None]
"""Returns the follower to read a partition from, at an offset; None where this broker is asked."""


class FetchParams(NamedTuple):
    """The request of a client as a whole, in its own terms.

    `replica` is None for a consumer; a former client's consumers may read from the leader alone.
    `now_ms` is the time of the request. `is_throttled` says of a partition that its records are
    held back from the follower at the moment (KIP-73), `preferred_read_replica` where a consumer
    had better read a partition from an offset on (KIP-392); None where no client is served so.
    """

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: IsolationLevel
    replica: FetchingReplica | None = None
    is_leader_needed: bool = True
    now_ms: float = 0.0
    is_throttled: Callable[[ReadablePartition], bool] | None = None
    preferred_read_replica: PreferredReadReplica | None = None
