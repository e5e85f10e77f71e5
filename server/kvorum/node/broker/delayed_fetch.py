"""A consumer's fetch from several partitions: Kafka's ReplicaManager.fetchMessages, DelayedFetch.

The first partition that has records returns at least one batch, however large; the others return
what fits into the rest of the response.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kvorum.broker.partition import IsolationLevel, LogReadInfo, Partition
from kvorum.broker.partition_leader.errors import LeaderRefusesError
from kvorum.node.broker.delayed_operation import wait_until
from kvorum.storage.errors import OffsetOutOfRangeError, StorageError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.uuid_text import ZERO_UUID


class PartitionFetch(NamedTuple):
    """What a consumer asks of one partition, in the terms of the request."""

    partition: Partition
    offset: int
    max_bytes: int
    current_leader_epoch: int
    topic_id: bytes = ZERO_UUID
    """The id of the topic, where the request or its session has one."""


class FetchParams(NamedTuple):
    """What a consumer asks for altogether, in the terms of the request."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: IsolationLevel


class FetchResult(NamedTuple):
    """The result of one partition: the read, or the code of its error."""

    read: LogReadInfo | None
    error: ErrorCode = ErrorCode.NONE


async def fetch_messages(
    fetches: Sequence[PartitionFetch], params: FetchParams
) -> list[FetchResult]:
    """Return the results in the order of `fetches`, once there is enough or time is up."""
    results = _read_all(fetches, params)
    wanted = min(params.min_bytes, params.max_bytes)
    missing = wanted - sum(len(result.read.records) for result in results if result.read)
    if missing <= 0 or any(result.error is not ErrorCode.NONE for result in results):
        return results
    partitions = [fetch.partition for fetch in fetches]
    sizes = [partition.log.size_bytes for partition in partitions]
    ends = [partition.readable_end(params.isolation) for partition in partitions]

    def is_complete() -> bool:
        if not all(partition.is_leader for partition in partitions):
            return True
        grown = sum(
            partition.log.size_bytes - size
            for partition, size, end in zip(partitions, sizes, ends, strict=True)
            if partition.readable_end(params.isolation) > end
        )
        return grown >= missing

    await wait_until(is_complete, partitions, timeout_ms=params.max_wait_ms)
    return _read_all(fetches, params)


def _read_all(fetches: Sequence[PartitionFetch], params: FetchParams) -> list[FetchResult]:
    left = params.max_bytes
    is_empty = True
    results: list[FetchResult] = []
    for fetch in fetches:
        result = _read(fetch, min(fetch.max_bytes, left), params.isolation, may_exceed=is_empty)
        if result.read is not None and result.read.records:
            is_empty = False
            left = max(left - len(result.read.records), 0)
        results.append(result)
    return results


def _read(
    fetch: PartitionFetch, max_bytes: int, isolation: IsolationLevel, *, may_exceed: bool
) -> FetchResult:
    if fetch.topic_id not in {ZERO_UUID, fetch.partition.topic_id}:
        # Another topic has the name by now.
        return FetchResult(None, ErrorCode.INCONSISTENT_TOPIC_ID)
    try:
        read = fetch.partition.fetch_records(
            fetch.offset,
            max_bytes,
            isolation=isolation,
            leader_epoch=fetch.current_leader_epoch,
        )
    except LeaderRefusesError as refusal:
        return FetchResult(None, refusal.code)
    except OffsetOutOfRangeError:
        return FetchResult(None, ErrorCode.OFFSET_OUT_OF_RANGE)
    except StorageError:
        return FetchResult(None, ErrorCode.KAFKA_STORAGE_ERROR)
    if len(read.records) > max_bytes and not may_exceed:
        read = read._replace(records=b"")
    return FetchResult(read)
