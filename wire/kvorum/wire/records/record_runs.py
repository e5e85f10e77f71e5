"""A batch's records in pieces: runs of whole records, and outlines of those that are too large.

The records of a packed batch are read from pieces of what it unpacks to. A run is some whole
records that follow each other in memory; a record that is larger than a piece is put together for
it. Where keys and values have no use, as for a leader's checks, such a record is passed over, and
only its outline is read.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kvorum.wire.errors import CorruptBatchError, InvalidRecordError
from kvorum.wire.records.decompression import PIECE_BYTES, RECORD_BYTES_MAX
from kvorum.wire.records.record import (
    HEADERS_MAX,
    VARINT_BYTES_MAX,
    VARLONG_BYTES_MAX,
    Record,
    long_number,
    long_time,
)

_WHAT: Final = "record"


class Run(NamedTuple):
    """Records that fill `data`, which begins at `position` of all records' bytes.

    `first_index` is the first one's, counted from the batch's first record.
    """

    data: bytes
    position: int
    first_index: int
    record_count: int


class RecordOutline(NamedTuple):
    """A record without its content; sizes are in bytes, None for null."""

    offset: int
    timestamp: int
    key_size: int | None
    value_size: int | None


def outline_of(record: Record) -> RecordOutline:
    """Return the outline of a record that was read."""
    return RecordOutline(
        record.offset,
        record.timestamp,
        None if record.key is None else len(record.key),
        None if record.value is None else len(record.value),
    )


class RecordPieces:
    """Reads the records of one batch, once, from pieces of their bytes."""

    def __init__(
        self,
        pieces: Iterable[bytes],
        *,
        count: int,
        base_offset: int,
        base_timestamp: int,
        record_bytes_max: int = RECORD_BYTES_MAX,
    ) -> None:
        self._bytes = PiecewiseBytes(pieces)
        self._count = count
        self._base_offset = base_offset
        self._base_timestamp = base_timestamp
        self._record_bytes_max = record_bytes_max

    def runs(self) -> Iterator[Run]:
        """Yield all records.

        What is wrong with a record is left to its reader. Raises `CorruptBatchError` where bytes
        follow the last one, and `InvalidRecordError` at the first that is larger than allowed.
        """
        for run in self._runs(outlined_bytes_min=None):
            assert isinstance(run, Run)
            yield run

    def runs_and_outlines(self) -> Iterator[Run | RecordOutline]:
        """Yield the records as `runs` does, but only outlines of those that exceed a piece."""
        return self._runs(outlined_bytes_min=PIECE_BYTES)

    def _runs(self, *, outlined_bytes_min: int | None) -> Iterator[Run | RecordOutline]:
        index = 0
        left = self._bytes
        while index < self._count:
            end, count = self._whole_records(self._count - index)
            if count:
                yield left.taken_up_to(end, index, count)
                index += count
                continue
            size = self._next_size()
            if size is None:
                # The reader of the rest says what is wrong there.
                yield left.taken_up_to(left.available_end(), index, 1)
                return
            if outlined_bytes_min is not None and size > outlined_bytes_min:
                yield self._outline()
                index += 1
            elif not left.gather(size, and_no_more=True):
                yield left.taken_up_to(left.available_end(), index, 1)
                return
        if left.gather(1):
            problem = f"bytes follow the last of {self._count}"
            raise CorruptBatchError(_WHAT, problem, offset=left.place)

    def _whole_records(self, count_max: int) -> tuple[int, int]:
        """Return the end and the number of the records that are whole in memory."""
        data = self._bytes.data
        pos = self._bytes.pos
        size = len(data)
        size_max = self._record_bytes_max
        count = 0
        try:
            while count < count_max:
                number = data[pos]
                end = pos + 1
                if number > 0x7F:
                    number, end = long_number(data, pos)
                end += number >> 1
                if number & 1 or end > size or number >> 1 > size_max:
                    break
                pos = end
                count += 1
        except (IndexError, CorruptBatchError):
            # A number that is cut off, or wrong.
            pass
        return pos, count

    def _next_size(self) -> int | None:
        """Return the size of the next record with its length; None without a right length."""
        left = self._bytes
        left.gather(VARINT_BYTES_MAX)
        try:
            number, begin = long_number(left.data, left.pos)
        except (IndexError, CorruptBatchError):
            return None
        if number & 1:
            return None
        size = number >> 1
        if size > self._record_bytes_max:
            problem = (
                f"{size} bytes exceed the configured maximum record size of "
                f"{self._record_bytes_max}"
            )
            raise InvalidRecordError(_WHAT, problem, offset=left.place)
        return begin - left.pos + size

    def _outline(self) -> RecordOutline:
        """Pass over the next record; raises `CorruptBatchError` where it is wrong."""
        left = self._bytes
        start = left.place
        try:
            size = left.number() >> 1
            end = left.place + size
            # One byte of attributes, of which none is defined.
            left.skip(1)
            time_delta = left.time_delta(self._base_timestamp)
            offset_delta = _signed(left.number())
            key_size = left.skip_sized()
            value_size = left.skip_sized()
            self._skip_headers(end)
        except IndexError:
            raise CorruptBatchError(_WHAT, "ends too early", offset=left.place) from None
        if left.place != end:
            problem = f"{left.place - start} bytes of which its length allows {end - start}"
            raise CorruptBatchError(_WHAT, problem, offset=start)
        return RecordOutline(
            self._base_offset + offset_delta,
            self._base_timestamp + time_delta,
            key_size,
            value_size,
        )

    def _skip_headers(self, end: int) -> None:
        left = self._bytes
        start = left.place
        count = _signed(left.number())
        if not 0 <= count * 2 <= end - left.place or count > HEADERS_MAX:
            raise CorruptBatchError(_WHAT, f"{count} headers", offset=start)
        for _ in range(count):
            if left.skip_sized() is None:
                raise CorruptBatchError(_WHAT, "a header without a key", offset=left.place)
            left.skip_sized()


class PiecewiseBytes:
    """Bytes that come in pieces: `data` is what is in memory, and is read up to `pos`."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._next_piece: bytes | None = None
        self._dropped = 0
        self.data = b""
        self.pos = 0

    @property
    def place(self) -> int:
        """The position in all of the bytes."""
        return self._dropped + self.pos

    def gather(self, size: int, *, and_no_more: bool = False) -> bool:
        """Have the next `size` bytes in memory; return False where there are fewer.

        With `and_no_more`, no byte after these is added, so that very many are not copied again.
        """
        missing = size - (len(self.data) - self.pos)
        if missing <= 0:
            return True
        parts = [self.data[self.pos :]]
        while missing > 0 and (piece := self._taken_piece()) is not None:
            if and_no_more and len(piece) > missing:
                self._next_piece = piece[missing:]
                piece = piece[:missing]
            parts.append(piece)
            missing -= len(piece)
        self._dropped += self.pos
        self.data = b"".join(parts)
        self.pos = 0
        return missing <= 0

    def _taken_piece(self) -> bytes | None:
        piece, self._next_piece = self._next_piece, None
        return next(self._pieces, None) if piece is None else piece

    def available_end(self) -> int:
        """Return the end of what is in memory."""
        return len(self.data)

    def taken_up_to(self, end: int, index: int, count: int) -> Run:
        """Return what is in memory up to `end`, and read on after it."""
        run = Run(self.data[self.pos : end], self.place, index, count)
        self.pos = end
        return run

    def skip(self, size: int) -> None:
        """Read on after `size` bytes, which need not be in memory together."""
        while size > len(self.data) - self.pos:
            size -= len(self.data) - self.pos
            self.pos = len(self.data)
            if not self.gather(1):
                raise IndexError
        self.pos += size

    def skip_sized(self) -> int | None:
        """Read on after bytes and their size; return that, or None for null."""
        number = self.number()
        if number & 1:
            return None
        self.skip(number >> 1)
        return number >> 1

    def number(self) -> int:
        """Read a number of 32 bits, zigzag as it is."""
        self.gather(VARINT_BYTES_MAX)
        number, self.pos = long_number(self.data, self.pos)
        return number

    def time_delta(self, base_timestamp: int) -> int:
        """Read the difference of a time to the base."""
        self.gather(VARLONG_BYTES_MAX)
        number, self.pos = long_time(self.data, self.pos, base_timestamp)
        return _signed(number)


def _signed(number: int) -> int:
    """Return what a zigzag number means."""
    return ~(number >> 1) if number & 1 else number >> 1
