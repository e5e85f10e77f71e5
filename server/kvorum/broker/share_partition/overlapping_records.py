"""The part of fetched records that holds the acquired ones."""

from collections.abc import Sequence

from kvorum.wire.messages.share_fetch import ShareFetchResponse
from kvorum.wire.records.legacy import Entry, first_offset_of


def overlapping_records(
    records: memoryview,
    entries: Sequence[Entry],
    acquired: Sequence[ShareFetchResponse.AcquiredRecords],
) -> memoryview:
    """Return the bytes of the batches of the log from the first acquired record to the last one.

    `entries` are the batches in `records`. As in Kafka, a single batch is returned with whatever
    follows it.
    """
    if len(entries) <= 1:
        return records
    first_acquired = acquired[0].first_offset
    last_acquired = acquired[-1].last_offset
    begin = 0
    end = 0
    for entry in entries:
        first_offset = first_offset_of(entry)
        if first_offset <= first_acquired:
            begin = entry.position
            end = begin + entry.size
        elif first_offset <= last_acquired:
            end = entry.position + entry.size
    return records[begin:end]
