"""A fetch of the metadata topic: Kafka's ReplicaManager.fetchMessages and DelayedFetch for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvorum.node.broker.metadata_topic import MetadataTopic
from kvorum.storage.errors import OffsetOutOfRangeError, StorageError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import read_batches

ANSWER_BYTES_MAX: Final = 256 * 1024
"""The most records of one response, unless a single batch is bigger (Kafka limits one to 8 MiB).

It bounds what a slow consumer keeps in memory, and for how long one read keeps the event loop.
"""
UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataFetchParams:
    """What a consumer asks for, in the terms of the request."""

    offset: int
    max_bytes: int
    min_bytes: int
    max_wait_ms: int


@dataclass(frozen=True, slots=True)
class FetchPartitionData:
    """The result for the partition; the offsets are unknown if there is an error."""

    error: ErrorCode
    high_watermark: int = UNKNOWN
    log_start_offset: int = UNKNOWN
    records: bytes | memoryview = b""


async def fetch(topic: MetadataTopic, params: MetadataFetchParams) -> FetchPartitionData:
    """Return committed records from an offset on; wait until there are enough, or time is up."""
    try:
        if params.offset > topic.end_offset():
            error = await topic.error_beyond_end(params.offset)
            if error is not ErrorCode.NONE:
                return FetchPartitionData(error)
        records = await _enough(topic, params)
    except OffsetOutOfRangeError:
        return FetchPartitionData(ErrorCode.OFFSET_OUT_OF_RANGE)
    except StorageError as error:
        topic.report(error)
        return FetchPartitionData(ErrorCode.KAFKA_STORAGE_ERROR)
    return FetchPartitionData(ErrorCode.NONE, topic.high_watermark, topic.log_start_offset, records)


async def _enough(topic: MetadataTopic, params: MetadataFetchParams) -> bytes | memoryview:
    """Return at least `min_bytes` of records, or what there is when the time is up."""
    deadline_ms = topic.now_ms() + params.max_wait_ms
    max_bytes = min(params.max_bytes, ANSWER_BYTES_MAX)
    min_bytes = min(params.min_bytes, max_bytes)
    first = await topic.read(params.offset, max_bytes)
    if len(first) >= min_bytes:
        return first
    records, next_offset = bytearray(first), _next_offset(first, params.offset)
    while len(records) < min_bytes:
        if not await topic.wait_beyond(next_offset, deadline_ms=deadline_ms):
            break
        more = await topic.read(next_offset, max_bytes - len(records))
        if records and len(records) + len(more) > max_bytes:
            break
        records += more
        next_offset = _next_offset(more, next_offset)
    return bytes(records)


def _next_offset(records: memoryview, offset: int) -> int:
    for batch in read_batches(records):
        offset = batch.next_offset
    return offset
