"""What a leader has to know of a batch's records, read without making any record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.records.record import (
    INT64_MAX,
    NEAR_LIMIT,
    RECORDS_AT_ONCE,
    Record,
    long_number,
    long_time,
    read_headers,
)

_LARGEST_BASE: Final = INT64_MAX - NEAR_LIMIT
_BEYOND_ANY_TIME: Final = 2**64
# As many times are kept at once: those of a million records would take more than the records.
_TWICE_AT_ONCE: Final = 2 * RECORDS_AT_ONCE


class RecordSummary(NamedTuple):
    """The records of a batch, together.

    `earliest` and `latest` are their timestamps in milliseconds. `is_numbered` means that their
    offsets count up from the base offset by one.
    """

    record_count: int
    earliest: int
    latest: int
    has_all_keys: bool
    is_numbered: bool


def summary_of(records: Iterable[Record], base_offset: int) -> RecordSummary:
    """Return the summary of records that are read one by one; there is at least one."""
    count, earliest, latest = 0, INT64_MAX, -INT64_MAX - 1
    has_all_keys = is_numbered = True
    for record in records:
        earliest, latest = min(earliest, record.timestamp), max(latest, record.timestamp)
        has_all_keys = has_all_keys and record.key is not None
        is_numbered = is_numbered and record.offset == base_offset + count
        count += 1
    return RecordSummary(count, earliest, latest, has_all_keys, is_numbered)


def summarize(data: bytes, *, count: int, base_timestamp: int) -> RecordSummary | None:
    """Return the summary of the `count` records that fill `data`.

    None is for what has to be read record by record: bytes that are wrong, no records at all, and
    times close to the limits of 64 bits.
    """
    if count <= 0 or abs(base_timestamp) > _LARGEST_BASE:
        return None
    try:
        return _summary(data, count, base_timestamp)
    except (IndexError, CorruptBatchError):
        return None


def _summary(  # noqa: C901, PLR0912, PLR0915 - the hottest loop: numbers are read in line
    data: bytes, count: int, base_timestamp: int
) -> RecordSummary | None:
    earliest, latest = _BEYOND_ANY_TIME, -_BEYOND_ANY_TIME
    has_all_keys = is_numbered = True
    pos = 0
    # All numbers are zigzag: an even one is twice a number that is not negative.
    for begin in range(0, count + count, _TWICE_AT_ONCE):
        times: list[int] = []
        add_time = times.append
        for twice_index in range(begin, min(begin + _TWICE_AT_ONCE, count + count), 2):
            number = data[pos]
            pos += 1
            if number > 0x7F:
                if (byte := data[pos]) < 0x80:
                    number += (byte - 1) << 7
                    pos += 1
                else:
                    number, pos = long_number(data, pos - 1)
            # Twice where it ends: odd, and so nowhere, for a negative length.
            twice_end = pos + pos + number
            # One byte of attributes, of which none is defined, then the time.
            number = data[pos + 1]
            pos += 2
            if number > 0x7F:
                if (byte := data[pos]) < 0x80:
                    number += (byte - 1) << 7
                    pos += 1
                else:
                    number, pos = long_time(data, pos - 1, base_timestamp)
            add_time(~(number >> 1) if number & 1 else number >> 1)
            number = data[pos]
            pos += 1
            if number > 0x7F:
                if (byte := data[pos]) < 0x80:
                    number += (byte - 1) << 7
                    pos += 1
                else:
                    number, pos = long_number(data, pos - 1)
            if number != twice_index:
                is_numbered = False
            number = data[pos]
            pos += 1
            if number > 0x7F:
                number, pos = long_number(data, pos - 1)
            if number & 1:
                has_all_keys = False
            else:
                pos += number >> 1
            number = data[pos]
            pos += 1
            if number > 0x7F:
                if (byte := data[pos]) < 0x80:
                    number += (byte - 1) << 7
                    pos += 1
                else:
                    number, pos = long_number(data, pos - 1)
            if not number & 1:
                pos += number >> 1
            if data[pos]:
                _, pos = read_headers(data, pos, twice_end >> 1)
            else:
                pos += 1
            if pos + pos != twice_end:
                return None
        earliest, latest = min(earliest, *times), max(latest, *times)
    if pos != len(data):
        return None
    base = base_timestamp
    return RecordSummary(count, base + earliest, base + latest, has_all_keys, is_numbered)
