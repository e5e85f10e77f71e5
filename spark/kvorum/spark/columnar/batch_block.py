"""Batches that are in memory together: their headers by column, and one buffer with their bytes.

A log has a batch for every few records. An object for each of them would cost as much as all of
its records do by column, so readers of whole blocks make none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvorum.spark.columnar.field_places import Flags, Ints
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.batch import COMPRESSION_MASK, CONTROL, HEADER_BYTES, LENGTH_FIELD_END

HEADER_FIELDS: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("partition_leader_epoch", ">i4"),
        ("magic", ">i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
"""The fields of `RecordBatch` that are in the header of a batch, in their order on disk."""
assert HEADER_FIELDS.itemsize == HEADER_BYTES


class BatchBlock(NamedTuple):
    """Batches of one file in their order; each array has one element for each of them.

    Batch i begins at `data[starts[i]]`, and at the byte `positions[i]` of its file. `data` may also
    have the bytes of others.
    """

    data: memoryview
    starts: Ints
    positions: Ints
    headers: NDArray[np.void]

    @property
    def batch_count(self) -> int:
        """The number of batches."""
        return len(self.starts)

    def column(self, name: str) -> Ints:
        """Return a field of all headers, by its name in `HEADER_FIELDS`."""
        values: Ints = self.headers[name].astype(np.int64)
        return values

    @property
    def ends(self) -> Ints:
        """The end of each batch in `data`."""
        return self.starts + self.column("length") + LENGTH_FIELD_END

    @property
    def last_offsets(self) -> Ints:
        """The offset of each batch's last record, by its header."""
        return self.column("base_offset") + self.column("last_offset_delta")

    @property
    def is_control(self) -> Flags:
        """Which batches hold control records."""
        found: Flags = (self.column("attributes") & CONTROL) != 0
        return found

    @property
    def is_packed(self) -> Flags:
        """Of which batches the records are compressed."""
        found: Flags = (self.column("attributes") & COMPRESSION_MASK) != 0
        return found

    @property
    def size(self) -> int:
        """The size of all batches in bytes, their headers included."""
        return int((self.ends - self.starts).sum())

    def where(self, is_kept: Flags) -> BatchBlock:
        """Return the batches that are kept; the bytes stay the same."""
        if is_kept.all():
            return self
        arrays = (self.starts[is_kept], self.positions[is_kept], self.headers[is_kept])
        return BatchBlock(self.data, *arrays)

    def between(self, first: int, end: int) -> BatchBlock:
        """Return the batches from the index `first` up to `end`, itself not included."""
        arrays = (self.starts[first:end], self.positions[first:end], self.headers[first:end])
        return BatchBlock(self.data, *arrays)

    def copied(self) -> BatchBlock:
        """Return the same batches with a buffer that has nothing but their bytes."""
        starts, ends = self.starts, self.ends
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        data = memoryview(b"".join(self.data[start:end] for start, end in pairs))
        return self._replace(data=data, starts=np.cumsum(ends - starts) - (ends - starts))

    def parts(self, number: int) -> Iterator[BatchBlock]:
        """Yield the batches in `number` parts of about the same count, or one by one if fewer."""
        size = -(-self.batch_count // number)
        yield from (self.between(first, first + size) for first in range(0, self.batch_count, size))

    def batches(self) -> Iterator[RecordBatch]:
        """Yield each batch as an object of its own."""
        for header, position, start in zip(
            self.headers.tolist(), self.positions.tolist(), self.starts.tolist(), strict=True
        ):
            data = self.data[start : start + header[1] + LENGTH_FIELD_END]
            yield RecordBatch._make((*header, position, data))


def headers_at(data: memoryview, starts: Ints) -> NDArray[np.void]:
    """Return the headers that begin at `starts`, of which all bytes are in `data`."""
    # A header could begin at every byte, and would overlap those that begin after it.
    everywhere: Any = np.ndarray(
        max(len(data) - HEADER_BYTES + 1, 0), HEADER_FIELDS, data, strides=(1,)
    )
    found: NDArray[np.void] = everywhere[starts]
    return found


def block_of(batches: Sequence[RecordBatch]) -> BatchBlock:
    """Return batches of one file as a block, with a copy of their bytes unless there is but one."""
    sizes = np.array([batch.size for batch in batches], np.int64)
    whole = len(batches) == 1
    data = batches[0].data if whole else memoryview(b"".join(batch.data for batch in batches))
    starts = np.cumsum(sizes) - sizes
    positions = np.array([batch.position for batch in batches], np.int64)
    return BatchBlock(data, starts, positions, headers_at(data, starts))


def joined(blocks: Sequence[BatchBlock]) -> BatchBlock:
    """Return the batches of blocks as one; of each block, `data` has nothing but their bytes."""
    sizes = np.array([len(block.data) for block in blocks], np.int64)
    before = np.cumsum(sizes) - sizes
    return BatchBlock(
        memoryview(b"".join(block.data for block in blocks)),
        np.concatenate([block.starts + start for block, start in zip(blocks, before, strict=True)]),
        np.concatenate([block.positions for block in blocks]),
        np.concatenate([block.headers for block in blocks]),
    )
