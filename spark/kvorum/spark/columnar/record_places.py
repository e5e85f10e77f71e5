"""The places of the records of batches and of old messages, and what their headers say."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kvorum.spark.columnar.batch_block import BatchBlock
from kvorum.spark.columnar.field_places import ABSENT, Places
from kvorum.spark.columnar.record_bounds import find_bounds
from kvorum.spark.columnar.varints import VARLONG_BYTES_MAX, Bytes, Flags, Ints, signed_varints
from kvorum.wire.records import DECOMPRESSED_BYTES_MAX, RecordBatch
from kvorum.wire.records.batch import COMPRESSION_MASK, HEADER_BYTES, LOG_APPEND_TIME
from kvorum.wire.records.compression import decompress
from kvorum.wire.records.legacy import LegacyMessage

PADDING = bytes(16)
"""The end of the data, so that the longest value of fixed size can be read at its last byte."""
_NO_HEADERS = b"\x00"


class RecordPlaces(NamedTuple):
    """Records in the order of the log; each array has one element for each of them.

    `content` is all bytes that places refer to, and `data` the same for numpy, without a copy.
    `batches` is the index of a record's batch. `timestamps` are milliseconds. A record's headers
    (their number comes first) are `data[header_starts[i]:ends[i]]`.
    """

    content: bytes
    data: Bytes
    batches: Ints
    offsets: Ints
    timestamps: Ints
    keys: Places
    values: Places
    header_starts: Ints
    ends: Ints

    def where(self, is_kept: Flags) -> RecordPlaces:
        """Return the places of the records that are kept."""
        return self._replace(
            batches=self.batches[is_kept],
            offsets=self.offsets[is_kept],
            timestamps=self.timestamps[is_kept],
            keys=Places(self.keys.starts[is_kept], self.keys.counts[is_kept]),
            values=Places(self.values.starts[is_kept], self.values.counts[is_kept]),
            header_starts=self.header_starts[is_kept],
            ends=self.ends[is_kept],
        )


class FoundRecords(NamedTuple):
    """Records of which only the bounds are known; each array has one element for each of them.

    Record i is `content[starts[i]:ends[i]]`, without its length; it is number `ordinals[i]`,
    counted from 0, among those of the batch with the index `batches[i]` in `block`.
    """

    content: bytes
    block: BatchBlock
    batches: Ints
    ordinals: Ints
    starts: Ints
    ends: Ints

    def having(self, needles: Collection[bytes]) -> FoundRecords:
        """Return the records that have one of the needles among their bytes."""
        kept = np.flatnonzero(have_one_of(self.content, self.starts, self.ends, needles))
        arrays = (self.batches, self.ordinals, self.starts, self.ends)
        return FoundRecords(self.content, self.block, *(array[kept] for array in arrays))

    def of_batches(self, name: str) -> Ints:
        """Return a field of the header of each record's batch."""
        return self.block.column(name)[self.batches]


def find_records(block: BatchBlock) -> FoundRecords | None:
    """Return the records of a block's batches, packed ones unpacked.

    None where lengths do not fit: reading the batches one by one then says what is wrong.
    Checksums are not verified. Raises `CorruptBatchError` and `BatchTooLargeError` for a batch that
    cannot be unpacked.
    """
    bodies = _unpacked(block) if block.is_packed.any() else _in_place(block)
    counts = block.column("record_count")
    bounds = find_bounds(bodies.content, bodies.starts, bodies.ends, counts)
    if bounds is None:
        return None
    batches = np.repeat(np.arange(block.batch_count), counts)
    ordinals = np.arange(len(batches)) - np.repeat(np.cumsum(counts) - counts, counts)
    return FoundRecords(bodies.content, block, batches, ordinals, *bounds)


def place_records(found: FoundRecords) -> RecordPlaces | None:
    """Return the places of what is in the records; None where lengths do not fit."""
    data = np.frombuffer(found.content, np.uint8)
    # One byte of attributes comes first, of which none is defined.
    time_deltas, pos = signed_varints(data, found.starts + 1, VARLONG_BYTES_MAX)
    offset_deltas, pos = signed_varints(data, pos)
    keys, pos = _nullable(data, pos)
    values, pos = _nullable(data, pos)
    # The number of headers takes one byte at least; without headers that is the last byte.
    has_none = data.take(pos, mode="clip") == 0
    if ((pos >= found.ends) | (has_none & (pos + 1 != found.ends))).any():
        return None
    timestamps = found.of_batches("base_timestamp") + time_deltas
    is_append_time = (found.block.column("attributes") & LOG_APPEND_TIME) != 0
    if is_append_time.any():
        appended = found.of_batches("max_timestamp")
        timestamps = np.where(is_append_time[found.batches], appended, timestamps)
    return RecordPlaces(
        content=found.content,
        data=data,
        batches=found.batches,
        offsets=found.of_batches("base_offset") + offset_deltas,
        timestamps=timestamps,
        keys=keys,
        values=values,
        header_starts=pos,
        ends=found.ends,
    )


class _Bodies(NamedTuple):
    """The records of each batch, without its header: `content[starts[i]:ends[i]]`."""

    content: bytes
    starts: Ints
    ends: Ints


def _in_place(block: BatchBlock) -> _Bodies:
    """Return the bodies of batches of which none is packed, without a look at each."""
    ends = block.ends
    first, end = (int(block.starts[0]), int(ends[-1])) if block.batch_count else (0, 0)
    content = b"".join((block.data[first:end], PADDING))
    return _Bodies(content, block.starts - first + HEADER_BYTES, ends - first)


def _unpacked(block: BatchBlock) -> _Bodies:
    bodies = [_body(batch) for batch in block.batches()]
    sizes = np.array([len(body) for body in bodies], np.int64)
    ends = np.cumsum(sizes)
    return _Bodies(b"".join((*bodies, PADDING)), ends - sizes, ends)


def _body(batch: RecordBatch) -> bytes:
    body = bytes(batch.data[HEADER_BYTES:])
    if not batch.attributes & COMPRESSION_MASK:
        return body
    return decompress(body, batch.compression, size_max=DECOMPRESSED_BYTES_MAX)


def _nullable(data: Bytes, pos: Ints) -> tuple[Places, Ints]:
    """Return the places of bytes that may be null, as every negative length means."""
    lengths, pos = signed_varints(data, pos)
    return Places(pos, np.maximum(lengths, ABSENT)), pos + np.maximum(lengths, 0)


def place_messages(messages: Sequence[LegacyMessage]) -> RecordPlaces:
    """Return the places of the records of `messages`, wrapped ones unpacked.

    Checksums are not verified. Raises `CorruptBatchError` and `BatchTooLargeError`.
    """
    content = bytearray(_NO_HEADERS)
    numbers: list[int] = []
    for index, message in enumerate(messages):
        for record in message.records():
            numbers += (index, record.offset, record.timestamp)
            for part in (record.key, record.value):
                numbers += (len(content), ABSENT if part is None else len(part))
                content += part or b""
    content += PADDING
    columns = np.array(numbers, np.int64).reshape(-1, 7).T
    batches, offsets, timestamps, key_starts, key_counts, value_starts, value_counts = columns
    none = np.zeros_like(offsets)
    return RecordPlaces(
        content=bytes(content),
        data=np.frombuffer(content, np.uint8),
        batches=batches,
        offsets=offsets,
        timestamps=timestamps,
        keys=Places(key_starts, key_counts),
        values=Places(value_starts, value_counts),
        header_starts=none,
        ends=none + len(_NO_HEADERS),
    )


def have_one_of(content: bytes, starts: Ints, ends: Ints, needles: Collection[bytes]) -> Flags:
    """Return which of the stretches `content[starts[i]:ends[i]]` have one of the needles in them.

    Stretches are in ascending order, and none overlaps another.
    """
    found = np.full(len(starts), b"" in needles)
    if not len(starts):
        return found
    for needle in needles:
        if not needle:
            continue
        places = np.fromiter(_occurrences(content, needle), np.int64)
        indexes = np.searchsorted(starts, places, "right") - 1
        # A place may be before all stretches, between two, or in two that follow each other.
        is_within = (indexes >= 0) & (places + len(needle) <= ends[indexes])
        found[indexes[is_within]] = True
    return found


def _occurrences(content: bytes, needle: bytes) -> Iterator[int]:
    place = content.find(needle)
    while place >= 0:
        yield place
        place = content.find(needle, place + 1)
