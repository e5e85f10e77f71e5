"""The facts of a batch's records that a leader needs, read without making any record."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.records.record import INT64_MAX, NEAR_LIMIT, long_number, long_time, read_headers
from kvorum.wire.records.record_runs import RecordOutline, Run

_LARGEST_BASE: Final = INT64_MAX - NEAR_LIMIT
_BEYOND_ANY_TIME: Final = 2**64
_ONE_BY_ONE: Final = 256
"""The number of records that are read one by one before the next are compared again."""
_FEWEST_ALIKE: Final = 8
_NUMBERS_END: Final = (0, 64, 8192)
"""By how many bytes the number of a record takes: the first number that takes more."""
_NUMBERS: Final = (
    (),
    (bytes(2 * number for number in range(_NUMBERS_END[1])),),
    (
        bytes(2 * number & 0x7F | 0x80 for number in range(_NUMBERS_END[2])),
        bytes(number >> 6 for number in range(_NUMBERS_END[2])),
    ),
)
"""By how many bytes they take: the first bytes of all numbers, and the second ones."""
_LAST_BYTE_MAX: Final = 0x7F
"""The largest byte that ends a number."""
_LAST_BYTES: Final = bytes(range(_LAST_BYTE_MAX + 1))
_OTHER_BYTES: Final = bytes(range(_LAST_BYTE_MAX + 1, 256))


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


def summary_of(records: Iterable[RecordOutline], base_offset: int) -> RecordSummary:
    """Return the summary of records that are read one by one; there is at least one."""
    count, earliest, latest = 0, INT64_MAX, -INT64_MAX - 1
    has_all_keys = is_numbered = True
    for record in records:
        earliest, latest = min(earliest, record.timestamp), max(latest, record.timestamp)
        has_all_keys = has_all_keys and record.key_size is not None
        is_numbered = is_numbered and record.offset == base_offset + count
        count += 1
    return RecordSummary(count, earliest, latest, has_all_keys, is_numbered)


def summarize_all(
    parts: Iterable[Run | RecordOutline], *, base_offset: int, base_timestamp: int
) -> RecordSummary | None:
    """Return the summary of a batch's records, in runs and outlines; None as `summarize` does."""
    total: RecordSummary | None = None
    for part in parts:
        if isinstance(part, Run):
            data, _, index, count = part
            summary = summarize(data, count=count, base_timestamp=base_timestamp, index=index)
        else:
            index = 0 if total is None else total.record_count
            summary = summary_of((part,), base_offset + index)
        if summary is None:
            return None
        total = summary if total is None else _joined(total, summary)
    return total


def _joined(one: RecordSummary, next_one: RecordSummary) -> RecordSummary:
    return RecordSummary(
        one.record_count + next_one.record_count,
        min(one.earliest, next_one.earliest),
        max(one.latest, next_one.latest),
        one.has_all_keys and next_one.has_all_keys,
        one.is_numbered and next_one.is_numbered,
    )


def summarize(
    data: bytes, *, count: int, base_timestamp: int, index: int = 0
) -> RecordSummary | None:
    """Return the summary of the `count` records that fill `data`; `index` is the first one's.

    None is for what has to be read record by record: bytes that are wrong, no records at all, and
    times close to the limits of 64 bits.
    """
    if count <= 0 or abs(base_timestamp) > _LARGEST_BASE:
        return None
    try:
        return _summary(data, index, index + count, base_timestamp)
    except (IndexError, CorruptBatchError):
        return None


def _summary(data: bytes, first: int, end: int, base_timestamp: int) -> RecordSummary | None:
    earliest, latest = _BEYOND_ANY_TIME, -_BEYOND_ANY_TIME
    has_all_keys = is_numbered = True
    index = first
    pos = 0
    while index < end:
        stretch = _records_alike(data, pos, index, end)
        if stretch is None:
            end_index = min(index + _ONE_BY_ONE, end)
            stretch = _any_records(data, pos, index, end_index, base_timestamp)
            if stretch is None:
                return None
        index, pos = stretch.end_index, stretch.end
        earliest, latest = min(earliest, stretch.earliest), max(latest, stretch.latest)
        has_all_keys = has_all_keys and stretch.has_all_keys
        is_numbered = is_numbered and stretch.is_numbered
    if pos != len(data):
        return None
    base = base_timestamp
    return RecordSummary(end - first, base + earliest, base + latest, has_all_keys, is_numbered)


class _Stretch(NamedTuple):
    """Records that follow each other, up to an index and a position.

    Times are milliseconds after the batch's base.
    """

    end_index: int
    end: int
    earliest: int
    latest: int
    has_all_keys: bool
    is_numbered: bool


def _records_alike(data: bytes, pos: int, index: int, count: int) -> _Stretch | None:
    """Return the records from `pos` on that differ in time, number, key and value alone.

    None is for fewer than `_FEWEST_ALIKE`, and for those that have headers or longer numbers.
    Records of one size lie at one distance, so that a slice holds the same byte of each.
    """
    if count - index < _FEWEST_ALIKE:
        return None
    size, attributes_at = _short_number(data, pos)
    end = attributes_at + (size >> 1)
    if data[attributes_at - 1] > _LAST_BYTE_MAX or size & 1 or end > len(data):
        return None
    # One byte of attributes, of which none is defined.
    time_at = attributes_at + 1
    _, number_at = _short_number(data, time_at)
    _, key_size_at = _short_number(data, number_at)
    value_size_at = key_size_at + 1 + _length(data[key_size_at])
    if data[key_size_at] > _LAST_BYTE_MAX or value_size_at >= end:
        return None
    value_size, value_at = _short_number(data, value_size_at)
    header_count_at = end - 1
    if (
        data[value_at - 1] > _LAST_BYTE_MAX
        or value_at + _length(value_size) != header_count_at
        or data[header_count_at]
    ):
        return None
    distance, number_width = end - pos, key_size_at - number_at
    alike_max = min((len(data) - pos) // distance, min(count, _NUMBERS_END[number_width]) - index)
    if alike_max < _FEWEST_ALIKE:
        return None

    def column(at: int) -> bytes:
        return data[at : pos + alike_max * distance : distance]

    same = (
        *range(pos, attributes_at),
        key_size_at,
        *range(value_size_at, value_at),
        header_count_at,
    )
    alike = min(_leading(column(at), data[at : at + 1]) for at in same)
    times = [column(at) for at in range(time_at, number_at)]
    alike = min(alike, _leading(times[-1], _LAST_BYTES))
    if len(times) > 1:
        alike = min(alike, _leading(times[0], _OTHER_BYTES))
    numbers = [column(at)[:alike] for at in range(number_at, key_size_at)]
    expected = [one[index : index + alike] for one in _NUMBERS[number_width]]
    if alike < _FEWEST_ALIKE or numbers != expected:
        return None
    earliest, latest = _earliest_and_latest([one[:alike] for one in times])
    has_all_keys = not data[key_size_at] & 1
    return _Stretch(index + alike, pos + alike * distance, earliest, latest, has_all_keys, True)


def _short_number(data: bytes, pos: int) -> tuple[int, int]:
    """Return the number of one or two bytes at `pos`, zigzag, and the position after it.

    One of more bytes is cut off after two.
    """
    number = data[pos]
    if number < 0x80:
        return number, pos + 1
    return number + ((data[pos + 1] - 1) << 7), pos + 2


def _length(zigzag: int) -> int:
    """Return how many bytes a key or a value has; none for null."""
    return 0 if zigzag & 1 else zigzag >> 1


def _leading(column: bytes, expected: bytes) -> int:
    """Return how many bytes come before the first unexpected one."""
    return len(column) - len(column.lstrip(expected))


def _earliest_and_latest(columns: list[bytes]) -> tuple[int, int]:
    """Return the least and the greatest of times whose first and second bytes are given."""
    first = columns[0]
    numbers = (
        set(first)
        if len(columns) == 1
        else {low + ((high - 1) << 7) for low, high in zip(*columns, strict=True)}
    )
    times = [~(number >> 1) if number & 1 else number >> 1 for number in numbers]
    return min(times), max(times)


def _any_records(  # noqa: C901, PLR0912, PLR0915 - the hottest loop: numbers are read in line
    data: bytes, pos: int, index: int, end_index: int, base_timestamp: int
) -> _Stretch | None:
    """Return the records from `pos` on, read one by one; None where their sizes are wrong."""
    has_all_keys = is_numbered = True
    times: list[int] = []
    add_time = times.append
    # All numbers are zigzag: an even one is twice a number that is not negative.
    for twice_index in range(index + index, end_index + end_index, 2):
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
    return _Stretch(end_index, pos, min(times), max(times), has_all_keys, is_numbered)
