"""Offsets in the metadata topic by time, or by their place: Kafka's fetchOffsetForTimestamp."""

from __future__ import annotations

from typing import Final

from kvorum.node.broker.metadata_topic import MetadataTopic
from kvorum.storage.errors import OffsetOutOfRangeError
from kvorum.storage.topic_log.timestamp_and_offset import TimestampAndOffset, first_record_since
from kvorum.wire.records import read_batches

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
SCAN_BYTES: Final = 64 * 1024
"""The part of the log that is looked through before other work of the event loop gets its turn."""
NO_TIMESTAMP: Final = -1


NOT_FOUND: Final = TimestampAndOffset(NO_TIMESTAMP, -1, -1)


async def find_offset(topic: MetadataTopic, timestamp: int) -> TimestampAndOffset:
    """Return the offset for a timestamp, or for a number that stands for a place.

    Raises LeaderRefusesError if the log cannot be read.
    """
    if timestamp == LATEST:
        return TimestampAndOffset(NO_TIMESTAMP, topic.high_watermark, topic.last_epoch)
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        return TimestampAndOffset(NO_TIMESTAMP, topic.log_start_offset, topic.start_epoch)
    if timestamp == MAX_TIMESTAMP:
        return await _first_as_late_as(topic, topic.max_timestamp)
    # The other special numbers are about tiered storage, which this log does not have.
    return NOT_FOUND if timestamp < 0 else await _first_as_late_as(topic, timestamp)


async def _first_as_late_as(topic: MetadataTopic, timestamp: int) -> TimestampAndOffset:
    """Return the first committed record with `timestamp` or a later one."""
    offset = topic.offset_before(timestamp)
    if offset is None:
        return NOT_FOUND
    while True:
        await topic.next_turn()
        try:
            data = topic.read(offset, SCAN_BYTES)
        except OffsetOutOfRangeError:
            # The log's start has moved past this place.
            offset = topic.log_start_offset
            continue
        if not data:
            return NOT_FOUND
        for batch in read_batches(data):
            offset = batch.next_offset
            found = first_record_since(batch, timestamp, start_offset=topic.log_start_offset)
            if found is not None:
                return found
