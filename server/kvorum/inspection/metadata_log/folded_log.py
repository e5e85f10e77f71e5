"""A metadata log, or a part of it, folded into an image batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import decode_record
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.primitives import Message
from kvorum.wire.records import Record, RecordBatch

BEGINNING: Final = OffsetAndEpoch(0, 0)
ENDLESS: Final = 2**63 - 1
"""An offset behind all others."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The last offset, epoch and time that an image contains."""

    offset: int
    epoch: int
    timestamp_ms: int


NOTHING_READ: Final = Provenance(-1, -1, -1)


@dataclass(frozen=True, slots=True)
class FoldedLog:
    """The state after some batches; records of an open transaction are in `image` only.

    `end` is where the next batch begins, with the epoch of the one before it.
    """

    image: MetadataImage = field(default_factory=MetadataImage)
    provenance: Provenance = NOTHING_READ
    end: OffsetAndEpoch = BEGINNING

    def add(
        self, batch: RecordBatch, *, start_offset: int = 0, end_offset: int = ENDLESS
    ) -> FoldedLog:
        """Return the state after one more batch, without its records outside of the two offsets.

        Raises `WireError` and `MetadataError` for a batch that is damaged, or cannot follow.
        """
        batch.verify()
        next_offset = min(batch.next_offset, end_offset)
        end = OffsetAndEpoch(next_offset, batch.partition_leader_epoch)
        if batch.is_control:
            return replace(self, end=end)
        was_open = self.image.transaction is not None
        image = self.image.apply_all(_records(batch, start_offset, end_offset))
        begun, last_offset = image.transaction, next_offset - 1
        if begun is not None:
            if was_open or begun.begin_offset == batch.base_offset:
                return FoldedLog(image, self.provenance, end)
            last_offset = begun.begin_offset - 1
        provenance = Provenance(last_offset, end.epoch, batch.max_timestamp)
        return FoldedLog(image, provenance, end)


def _records(
    batch: RecordBatch, start_offset: int, end_offset: int
) -> Iterator[tuple[Message, int, int]]:
    for record in batch.records():
        if not start_offset <= record.offset < end_offset:
            continue
        yield (*decoded(record), record.offset)


def decoded(record: Record) -> RecordAndVersion:
    """Return what is in a metadata record; raises `WireError` or `MetadataError`."""
    if record.value is None:
        raise CorruptBatchError("record", f"no value at offset {record.offset}")
    return decode_record(bytes(record.value))
