"""Metadata records of a run of batches: their frames, and where their bodies are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvorum.metadata.record_frame import FRAME_VERSION, SHORT_HEADER_BYTES
from kvorum.spark.columnar.batch_block import BatchBlock
from kvorum.spark.columnar.record_places import find_records, place_records
from kvorum.spark.columnar.varints import Bytes, Flags, Ints


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
