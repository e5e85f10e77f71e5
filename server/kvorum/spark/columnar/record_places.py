"""Where the records of a run of batches are, and what their headers say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kvorum.spark.columnar.field_places import ABSENT, Places
from kvorum.spark.columnar.record_bounds import find_bounds
from kvorum.spark.columnar.varints import VARLONG_BYTES_MAX, Bytes, Flags, Ints, signed_varints
from kvorum.wire.records import DECOMPRESSED_BYTES_MAX, RecordBatch
from kvorum.wire.records.batch import COMPRESSION_MASK, HEADER_BYTES
from kvorum.wire.records.compression import decompress

PADDING = bytes(16)
"""Behind the data, so that the longest value of fixed size can be read at its last byte."""


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


def place_records(batches: Sequence[RecordBatch]) -> RecordPlaces | None:
    """Return the places of the records of `batches`, packed ones unpacked.

    None where lengths do not fit: reading the batches one by one then says what is wrong.
    Checksums are not verified. Raises `CorruptBatchError` and `BatchTooLargeError` for a batch that
    cannot be unpacked.
    """
    bodies = [_body(batch) for batch in batches]
    content = b"".join((*bodies, PADDING))
    data = np.frombuffer(content, np.uint8)
    body_ends = np.cumsum([len(body) for body in bodies])
    body_starts = np.concatenate(([0], body_ends[:-1]))
    counts = np.array([batch.record_count for batch in batches], np.int64)
    bounds = find_bounds(data, body_starts, body_ends, counts)
    if bounds is None:
        return None
    return _with_parts(content, *bounds, batches, np.repeat(np.arange(len(batches)), counts))


def _body(batch: RecordBatch) -> bytes:
    body = bytes(batch.data[HEADER_BYTES:])
    if not batch.attributes & COMPRESSION_MASK:
        return body
    return decompress(body, batch.compression, size_max=DECOMPRESSED_BYTES_MAX)


def _with_parts(
    content: bytes, starts: Ints, ends: Ints, batches: Sequence[RecordBatch], batch_of: Ints
) -> RecordPlaces | None:
    data = np.frombuffer(content, np.uint8)
    # One byte of attributes comes first, of which none is defined.
    time_deltas, pos = signed_varints(data, starts + 1, VARLONG_BYTES_MAX)
    offset_deltas, pos = signed_varints(data, pos)
    keys, pos = _nullable(data, pos)
    values, pos = _nullable(data, pos)
    # The number of headers is one byte at least, and the last one where there are none.
    has_none = data.take(pos, mode="clip") == 0
    if ((pos >= ends) | (has_none & (pos + 1 != ends))).any():
        return None

    def each(facts: list[int]) -> Ints:
        return np.array(facts, np.int64)[batch_of]

    appended = each([batch.is_log_append_time for batch in batches]).astype(np.bool_)
    created = each([batch.base_timestamp for batch in batches]) + time_deltas
    return RecordPlaces(
        content=content,
        data=data,
        batches=batch_of,
        offsets=each([batch.base_offset for batch in batches]) + offset_deltas,
        timestamps=np.where(appended, each([batch.max_timestamp for batch in batches]), created),
        keys=keys,
        values=values,
        header_starts=pos,
        ends=ends,
    )


def _nullable(data: Bytes, pos: Ints) -> tuple[Places, Ints]:
    """Return the places of bytes that may be null, as every negative length means."""
    lengths, pos = signed_varints(data, pos)
    return Places(pos, np.maximum(lengths, ABSENT)), pos + np.maximum(lengths, 0)
