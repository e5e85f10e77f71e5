"""The core's view of the log: its start and end, epochs and snapshots, and no bytes."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kvorum.wire.offset_and_epoch import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch
from kvorum.wire.valid_offset_and_epoch import (
    EpochStart,
    LogOutline,
    ValidOffsetAndEpoch,
    end_offset_for_epoch,
    validate_offset_and_epoch,
)


@dataclass(slots=True)
class LogView:
    """A mirror of the driver's log; every change of the one is made to the other.

    The log below `durable_end_offset` survives a power cut.
    """

    start_offset: int = 0
    end_offset: int = 0
    durable_end_offset: int = 0
    epochs: list[EpochStart] = field(default_factory=list[EpochStart])
    snapshots: list[OffsetAndEpoch] = field(default_factory=list[OffsetAndEpoch])

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, or else of the snapshot, or 0."""
        if self.epochs:
            return self.epochs[-1].epoch
        return self.latest_snapshot.epoch if self.latest_snapshot is not None else 0

    @property
    def end(self) -> OffsetAndEpoch:
        """The log's end as Vote and Fetch requests carry it."""
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        """The snapshot with the highest end offset."""
        return max(self.snapshots, default=None)

    @property
    def latest_loadable_snapshot(self) -> OffsetAndEpoch | None:
        """The latest snapshot, unless that is the bootstrap one, which holds no records."""
        latest = self.latest_snapshot
        return None if latest == BOOTSTRAP_SNAPSHOT_ID else latest

    def append(self, *, epoch: int, count: int) -> int:
        """Note `count` records of `epoch` at the end; return the offset of the first.

        Raises ValueError for an epoch below the last one.
        """
        if count < 1 or epoch < self.last_epoch:
            raise ValueError(f"{count} records of epoch {epoch} behind epoch {self.last_epoch}")
        base_offset = self.end_offset
        if not self.epochs or self.epochs[-1].epoch != epoch:
            self.epochs.append(EpochStart(epoch, base_offset))
        self.end_offset += count
        return base_offset

    def became_durable(self, end_offset: int) -> bool:
        """Note that the log is durable below `end_offset`; return whether that is news."""
        reached = min(end_offset, self.end_offset)
        if reached <= self.durable_end_offset:
            return False
        self.durable_end_offset = reached
        return True

    def truncate_to(self, end_offset: int) -> None:
        """Note that everything at `end_offset` and behind is gone."""
        self.end_offset = min(self.end_offset, max(end_offset, self.start_offset))
        self.durable_end_offset = min(self.durable_end_offset, self.end_offset)
        while self.epochs and self.epochs[-1].start_offset >= self.end_offset:
            self.epochs.pop()

    def replace_by_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Note that the log is empty and continues at the end of a durable snapshot."""
        self.start_offset = self.end_offset = self.durable_end_offset = snapshot_id.offset
        self.epochs.clear()
        self.snapshots = [snapshot_id]

    def add_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Note a finished snapshot."""
        if snapshot_id not in self.snapshots:
            self.snapshots.append(snapshot_id)

    def start_moved(self, start_offset: int, snapshots: Iterable[OffsetAndEpoch]) -> None:
        """Note that older records and snapshots were removed; `snapshots` are the others."""
        self.start_offset = max(self.start_offset, start_offset)
        self.snapshots = list(snapshots)
        older = [entry for entry in self.epochs if entry.start_offset <= self.start_offset]
        if older:
            first = EpochStart(older[-1].epoch, self.start_offset)
            self.epochs = [first, *self.epochs[len(older) :]]

    def end_offset_for(self, epoch: int) -> OffsetAndEpoch:
        """Return the largest epoch not above `epoch` and the offset where it ends."""
        return end_offset_for_epoch(self._outline, epoch)

    def judge(self, position: OffsetAndEpoch) -> ValidOffsetAndEpoch:
        """Return whether a replica can fetch there, must truncate, or needs a snapshot."""
        return validate_offset_and_epoch(self._outline, position)

    @property
    def _outline(self) -> LogOutline:
        return LogOutline(
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            last_epoch=self.last_epoch,
            epochs=self.epochs,
            snapshots=self.snapshots,
        )
