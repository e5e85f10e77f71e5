"""A fetch from several partitions, which waits until there is enough to return.

Kafka's ReplicaManager.fetchMessages and DelayedFetch. The first partition that has records returns
at least one batch, however large; the others return what fits into the rest of the response.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kvorum.broker.broker_topic_stats import BrokerTopicStats
from kvorum.broker.fetch_isolation import readable_end
from kvorum.broker.log_read import LogReadInfo
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.broker.partition_leader.replica_state import FollowerFetch
from kvorum.broker.read_ahead import ReadAhead, read_ahead
from kvorum.node.broker.fetch_params import FetchingReplica, FetchParams, PartitionFetch
from kvorum.node.broker.purgatories import DelayedOperationPurgatory
from kvorum.node.coroutines import in_thread
from kvorum.node.runtime import Runtime
from kvorum.storage.errors import CorruptLogError, OffsetOutOfRangeError, StorageError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.uuid_text import ZERO_UUID


class FetchResult(NamedTuple):
    """The result of one partition: the read, or the code of its error.

    With a `preferred_read_replica` nothing was read: the consumer reads from that broker.
    """

    read: LogReadInfo | None
    error: ErrorCode = ErrorCode.NONE
    preferred_read_replica: int | None = None

    @property
    def is_to_be_answered(self) -> bool:
        """Whether the client must hear of this at once."""
        is_diverging = self.read is not None and self.read.diverging is not None
        is_read_elsewhere = self.preferred_read_replica is not None
        return is_diverging or is_read_elsewhere or self.error is not ErrorCode.NONE


async def fetch_messages(
    fetches: Sequence[PartitionFetch],
    params: FetchParams,
    purgatory: DelayedOperationPurgatory,
    stats: BrokerTopicStats,
    threads: Runtime,
) -> list[FetchResult]:
    """Return the results in the order of `fetches`, once there is enough or time is up.

    Until then the fetch is in the `purgatory`; `stats` count it. What is not at hand is read by
    `threads`.
    """
    for fetch in fetches:
        stats.on_fetch_request(fetch.partition.topic_partition.topic)
    results = await _fetch_messages(fetches, params, purgatory, threads)
    stats.failed_fetch_requests += sum(
        result.error is ErrorCode.CORRUPT_MESSAGE for result in results
    )
    return results


async def _fetch_messages(
    fetches: Sequence[PartitionFetch],
    params: FetchParams,
    purgatory: DelayedOperationPurgatory,
    threads: Runtime,
) -> list[FetchResult]:
    results = await read_from_log(fetches, params, threads)
    wanted = min(params.min_bytes, params.max_bytes)
    missing = wanted - sum(len(result.read.records) for result in results if result.read)
    if missing <= 0 or any(result.is_to_be_answered for result in results):
        return results
    partitions = [fetch.partition for fetch in fetches]
    roles = [(partition.leader_epoch, partition.is_leader) for partition in partitions]
    isolation = params.isolation if params.replica is None else None

    def is_complete() -> bool:
        available = 0
        for fetch, role in zip(fetches, roles, strict=True):
            partition = fetch.partition
            if (partition.leader_epoch, partition.is_leader) != role:
                return True
            size = partition.bytes_available(
                fetch.offset, fetch.max_bytes, isolation=isolation, wanted=wanted
            )
            if size is None:
                return True
            if params.is_throttled is None or not params.is_throttled(partition):
                available += size
        return available >= wanted

    await purgatory.wait_until(is_complete, partitions, timeout_ms=params.max_wait_ms)
    ahead = await _read_ahead(fetches, params, threads)
    return _read_all(fetches, params, ahead, is_first=False)


async def read_from_log(
    fetches: Sequence[PartitionFetch], params: FetchParams, threads: Runtime
) -> list[FetchResult]:
    """Return what there is now, in the order of `fetches`; the first records of any size."""
    ahead = await _read_ahead(fetches, params, threads)
    return _read_all(fetches, params, ahead, is_first=True)


async def _read_ahead(
    fetches: Sequence[PartitionFetch], params: FetchParams, threads: Runtime
) -> dict[int, ReadAhead]:
    """Read what is not at hand in a thread; return it by the number of its fetch."""
    reads: dict[int, Callable[[], ReadAhead]] = {}
    isolation = params.isolation if params.replica is None else None
    for number, fetch in enumerate(fetches):
        partition = fetch.partition
        if not isinstance(partition, Partition):
            continue
        end_offset = readable_end(partition.log, isolation)
        if not partition.log.local_log.is_at_hand(fetch.offset, end_offset=end_offset):
            max_bytes = min(fetch.max_bytes, params.max_bytes)
            reads[number] = partial(
                read_ahead, partition.log, fetch.offset, max_bytes, end_offset=end_offset
            )
    if not reads:
        return {}
    wait = in_thread(threads, lambda: {number: read() for number, read in reads.items()})
    found: dict[int, ReadAhead] = await wait
    return found


def _read_all(
    fetches: Sequence[PartitionFetch],
    params: FetchParams,
    ahead: Mapping[int, ReadAhead],
    *,
    is_first: bool,
) -> list[FetchResult]:
    left = params.max_bytes
    is_empty = True
    results: list[FetchResult] = []
    for number, fetch in enumerate(fetches):
        max_bytes = min(fetch.max_bytes, left)
        result = _read(
            fetch, max_bytes, params, ahead.get(number), is_first=is_first, may_exceed=is_empty
        )
        size = 0 if result.read is None else len(result.read.records)
        is_empty = is_empty and size == 0
        left = max(left - size, 0)
        results.append(result)
    return results


def _read(
    fetch: PartitionFetch,
    max_bytes: int,
    params: FetchParams,
    ahead: ReadAhead | None,
    *,
    is_first: bool,
    may_exceed: bool,
) -> FetchResult:
    if fetch.topic_id not in {ZERO_UUID, fetch.partition.topic_id}:
        # Another topic has the name by now.
        return FetchResult(None, ErrorCode.INCONSISTENT_TOPIC_ID)
    find, preferred = params.preferred_read_replica, None
    if find is not None:
        preferred = find(fetch.partition, fetch.offset)
    try:
        if preferred is not None:
            snapshot = fetch.partition.fetch_offset_snapshot(fetch.current_leader_epoch)
            return FetchResult(snapshot, preferred_read_replica=preferred)
        read = _read_for(params.replica, fetch, max_bytes, params, ahead, is_first=is_first)
    except LeaderRefusesError as refusal:
        return FetchResult(None, refusal.code)
    except OffsetOutOfRangeError:
        return FetchResult(None, ErrorCode.OFFSET_OUT_OF_RANGE)
    except CorruptLogError:
        return FetchResult(None, ErrorCode.CORRUPT_MESSAGE)
    except StorageError:
        return FetchResult(None, ErrorCode.KAFKA_STORAGE_ERROR)
    if max_bytes < 0 and read.records:
        # As in Kafka, whose segments read no negative number of bytes.
        return FetchResult(None, ErrorCode.UNKNOWN_SERVER_ERROR)
    is_too_much = len(read.records) > max_bytes and not may_exceed
    throttled = params.is_throttled
    if is_too_much or (read.records and throttled is not None and throttled(fetch.partition)):
        read = read._replace(records=b"")
    return FetchResult(read)


def _read_for(
    replica: FetchingReplica | None,
    fetch: PartitionFetch,
    max_bytes: int,
    params: FetchParams,
    ahead: ReadAhead | None,
    *,
    is_first: bool,
) -> LogReadInfo:
    if replica is None:
        return fetch.partition.fetch_records(
            fetch.offset,
            max_bytes,
            isolation=params.isolation,
            leader_epoch=fetch.current_leader_epoch,
            last_fetched_epoch=fetch.last_fetched_epoch,
            is_leader_needed=params.is_leader_needed,
            ahead=ahead,
        )
    progress = FollowerFetch(
        broker_id=replica.broker_id,
        broker_epoch=replica.broker_epoch,
        leader_epoch=fetch.current_leader_epoch,
        offset=fetch.offset,
        log_start_offset=fetch.log_start_offset,
    )
    return fetch.partition.fetch_records_of_follower(
        progress,
        max_bytes,
        last_fetched_epoch=fetch.last_fetched_epoch,
        now_ms=params.now_ms if is_first else None,
        ahead=ahead,
    )
