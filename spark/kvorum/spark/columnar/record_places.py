"""The places of the records of batches and of old messages, and what their headers say."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from itertools import repeat
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvorum.metadata.record_frame import FRAME_VERSION, SHORT_HEADER_BYTES
from kvorum.spark.columnar.batch_block import BatchBlock
from kvorum.spark.columnar.field_places import (
    ABSENT,
    UINT32_MAX,
    VARINT_BYTES_MAX,
    VARLONG_BYTES_MAX,
    Bytes,
    Flags,
    Ints,
    Places,
    signed_varints,
)
from kvorum.wire.records.batch import COMPRESSION_MASK, HEADER_BYTES, LOG_APPEND_TIME
from kvorum.wire.records.decompression import decompress
from kvorum.wire.records.legacy import LegacyMessage

UNPACKED_BYTES_MAX: Final = 256 * 1024 * 1024
"""The size that batches may unpack to together: their rows are made of all these bytes at once."""
_TOGETHER_MIN: Final = 256
"""From how many batches on it is quicker to find a record of each together."""
_NO_STEP: Final = 0
_BEYOND: Final = 1 << 40

PADDING = bytes(16)
"""The end of the data, so that the longest value of fixed size can be read at its last byte."""
_NO_HEADERS = b"\x00"
"""The header count of a record without headers."""


def _steps() -> tuple[int, ...]:
    """Return how far on the next record is, by the first byte of a record's length.

    A length is zigzag, so an odd one is negative. `_NO_STEP` where the byte does not say it alone.
    """
    return tuple(_NO_STEP if byte > 0x7F or byte & 1 else 1 + (byte >> 1) for byte in range(256))


_STEPS: Final = _steps()


class Bounds(NamedTuple):
    """The begin of records after their length, and their end; in the order of the log."""

    starts: Ints
    ends: Ints


def find_bounds(content: bytes, starts: Ints, ends: Ints, counts: Ints) -> Bounds | None:
    """Return the bounds of the records of batches; None where lengths do not lead to their ends.

    `content[starts[i]:ends[i]]` are the `counts[i]` records of a batch, and `content` goes on
    after the last of them for at least as long as a number may be.

    A record's place is known only from the length of the one before it. So the first records of all
    batches are found at once, then the second ones, and so on while many batches have that many;
    the rest of the few long batches is found record by record.
    """
    # A record takes a byte at least: no memory is set aside for what cannot be there.
    if (counts > ends - starts).any():
        return None
    data = np.frombuffer(content, np.uint8)
    firsts = np.cumsum(counts) - counts
    found = Bounds(*(np.empty(int(counts.sum()), np.int64) for _ in Bounds._fields))
    pos = starts.copy()
    step = 0
    rows = np.flatnonzero(counts)
    while rows.size >= _TOGETHER_MIN:
        lengths, begins = signed_varints(data, pos[rows])
        after = begins + lengths
        if ((lengths < 0) | (after > ends[rows])).any():
            return None
        found.starts[firsts[rows] + step] = begins
        found.ends[firsts[rows] + step] = after
        pos[rows] = after
        step += 1
        rows = rows[counts[rows] > step]
    left = counts[rows] - step
    places = _following(content, pos[rows], ends[rows], left)
    if places is None:
        return None
    pos[rows] = ends[rows]
    indexes = _indexes(firsts[rows] + step, left)
    lengths, found.starts[indexes] = signed_varints(data, places)
    found.ends[indexes] = found.starts[indexes] + lengths
    return found if np.array_equal(pos, ends) else None


def _indexes(firsts: Ints, counts: Ints) -> Ints:
    """Return `counts[i]` numbers that count up from `firsts[i]`, for each i."""
    before = np.cumsum(counts) - counts
    found: Ints = np.repeat(firsts - before, counts)
    return found + np.arange(len(found))


def _following(content: bytes, starts: Ints, ends: Ints, counts: Ints) -> Ints | None:
    """Return where each of `counts` records of each batch begins with its length.

    The first of them begin at `starts`. None where they do not lead to the batches' `ends`.
    """
    places = array("q")
    add = places.append
    try:
        for start, end, count in zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True):
            pos: int = start
            # This is done for each record alone, so it is short and calls little.
            for _ in repeat(None, count):
                add(pos)
                pos += _STEPS[content[pos]] or _long_step(content, pos)
            if pos != end:
                return None
    except IndexError:
        return None
    return np.frombuffer(places, np.int64)


def _long_step(content: bytes, pos: int) -> int:
    """Return how far on the next record is, by a length of any number of bytes.

    That is `_BEYOND` every end for what is not a length; raises IndexError for one that is cut off.
    """
    length = 0
    for index in range(VARINT_BYTES_MAX):
        byte = content[pos + index]
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            length &= UINT32_MAX
            return _BEYOND if length & 1 else index + 1 + (length >> 1)
    return _BEYOND


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
    Checksums are not verified. Raises `CorruptBatchError` for a batch that cannot be unpacked, and
    `BatchTooLargeError` where all of them unpack to more than `UNPACKED_BYTES_MAX`.
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
    bodies: list[bytes] = []
    room = UNPACKED_BYTES_MAX
    for batch in block.batches():
        body = bytes(batch.data[HEADER_BYTES:])
        if batch.attributes & COMPRESSION_MASK:
            body = decompress(body, batch.compression, size_max=room)
            room -= len(body)
        bodies.append(body)
    sizes = np.array([len(body) for body in bodies], np.int64)
    ends = np.cumsum(sizes)
    return _Bodies(b"".join((*bodies, PADDING)), ends - sizes, ends)


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
        for record in message.records(UNPACKED_BYTES_MAX):
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


class RecordRun(NamedTuple):
    """Metadata records in the order of the log; each array has one element for each of them.

    A record's body is `data[starts[i]:ends[i]]`, without the frame that `types` and `versions` are
    from. `timestamps` are milliseconds. `has_all_offsets` is whether the offset of each record
    follows from its place in its batch.
    """

    data: Bytes
    has_all_offsets: bool
    offsets: Ints
    timestamps: Ints
    epochs: Ints
    types: Bytes
    versions: Bytes
    starts: Ints
    ends: Ints

    @property
    def kinds(self) -> NDArray[np.uint16]:
        """The type and the version of each record in one number, the type in its upper byte."""
        kinds = self.types.astype(np.uint16) << 8 | self.versions
        return kinds.astype(np.uint16, copy=False)

    def where(self, is_kept: Flags) -> RecordRun:
        """Return the records that are kept; the bytes stay the same."""
        if is_kept.all():
            return self
        rows = np.flatnonzero(is_kept)
        return self._replace(
            offsets=self.offsets[rows],
            timestamps=self.timestamps[rows],
            epochs=self.epochs[rows],
            types=self.types[rows],
            versions=self.versions[rows],
            starts=self.starts[rows],
            ends=self.ends[rows],
        )


def read_run(block: BatchBlock, needles: Sequence[Collection[bytes]] = ()) -> RecordRun | None:
    """Return the records of batches that hold metadata records and no control records.

    Of each collection of `needles` a record has one among its bytes; others are left out, and
    nothing of them but their bounds is looked at. None where a record is not as metadata records
    are: with a key, headers, without a value, with an unknown frame, or with lengths that do not
    fit. Checksums are not verified. Raises as `find_records` does.
    """
    found = find_records(block)
    if found is None:
        return None
    for collection in needles:
        found = found.having(collection)
    placed = place_records(found)
    if placed is None:
        return None
    data, value = placed.data, placed.values.starts
    frame_version, types, versions = (
        data.take(value + index, mode="clip") for index in range(SHORT_HEADER_BYTES)
    )
    is_usual = (placed.keys.counts < 0) & (placed.values.counts >= SHORT_HEADER_BYTES)
    is_usual &= data.take(placed.header_starts, mode="clip") == 0
    is_usual &= (frame_version == FRAME_VERSION) & (types < 0x80) & (versions < 0x80)
    if not is_usual.all():
        return None
    expected = found.of_batches("base_offset") + found.ordinals
    return RecordRun(
        data=data,
        has_all_offsets=np.array_equal(placed.offsets, expected),
        offsets=placed.offsets,
        timestamps=placed.timestamps,
        epochs=found.of_batches("partition_leader_epoch"),
        types=types,
        versions=versions,
        starts=value + SHORT_HEADER_BYTES,
        ends=placed.header_starts,
    )
