"""The state that the batches of a metadata log add up to, one batch after the other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from kvorum.inspection.metadata_batches import decoded
from kvorum.inspection.moment import ENDLESS
from kvorum.metadata.image import MetadataImage
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.records import RecordBatch

BEGINNING: Final = OffsetAndEpoch(0, 0)


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
        image = self.image.apply_all(
            (*decoded(record), record.offset)
            for record in batch.records()
            if start_offset <= record.offset < end_offset
        )
        begun = image.transaction
        last_offset = next_offset - 1
        if begun is not None:
            if was_open or begun.begin_offset == batch.base_offset:
                return FoldedLog(image, self.provenance, end)
            last_offset = begun.begin_offset - 1
        return FoldedLog(image, Provenance(last_offset, end.epoch, batch.max_timestamp), end)
