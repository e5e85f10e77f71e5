"""A log in parts that can be dumped each by itself."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from kvorum.wire.records.batch import LENGTH_FIELD_END

PART_BYTES: Final = 1 << 17
"""The least size of a part. Its text, about five times as long, fits into a processor's cache."""

# Batches, and messages of formats 0 and 1, begin with an offset and the length of what follows.
_LENGTH: Final = Struct(">8xi")


class Part(NamedTuple):
    """Positions in a file: where a part of a log begins, and where the next one does."""

    begin: int
    end: int


def log_parts(data: memoryview, part_bytes: int = PART_BYTES) -> Iterator[Part]:
    """Yield the parts of a log, each of whole batches, by their lengths alone.

    The last part has all that is after the first length that cannot be right.
    """
    end = len(data)
    # Behind it no batch can begin.
    last = end - _LENGTH.size
    begin = position = 0
    next_look = min(part_bytes, last + 1)
    unpack = _LENGTH.unpack_from
    while position <= last:
        (length,) = unpack(data, position)
        if length <= 0:
            break
        position += LENGTH_FIELD_END + length
        if position >= next_look:
            if position > last:
                break
            yield Part(begin, position)
            begin = position
            next_look = min(begin + part_bytes, last + 1)
    yield Part(begin, end)
