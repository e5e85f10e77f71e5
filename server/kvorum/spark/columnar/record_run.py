"""Metadata records of a run of batches: their frames, and where their bodies are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kvorum.metadata.record_frame import FRAME_VERSION, SHORT_HEADER_BYTES
from kvorum.spark.columnar.record_places import place_records
from kvorum.spark.columnar.varints import Bytes, Ints
from kvorum.wire.records import RecordBatch


class RecordRun(NamedTuple):
    """Metadata records in the order of the log; each array has one element for each of them.

    A record's body is `data[starts[i]:ends[i]]`, without the frame that `types` and `versions` are
    from. `timestamps` are milliseconds.
    """

    data: Bytes
    offsets: Ints
    timestamps: Ints
    epochs: Ints
    types: Ints
    versions: Ints
    starts: Ints
    ends: Ints


def read_run(batches: Sequence[RecordBatch]) -> RecordRun | None:
    """Return the records of batches that hold metadata records and no control records.

    None where a record is not as metadata records are: with a key, headers, without a value, with
    an unknown frame, or with lengths that do not fit. Checksums are not verified. Raises as
    `place_records` does.
    """
    placed = place_records(batches)
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
    epochs = np.array([batch.partition_leader_epoch for batch in batches], np.int64)
    return RecordRun(
        data=data,
        offsets=placed.offsets,
        timestamps=placed.timestamps,
        epochs=epochs[placed.batches],
        types=types.astype(np.int64),
        versions=versions.astype(np.int64),
        starts=value + SHORT_HEADER_BYTES,
        ends=placed.header_starts,
    )
