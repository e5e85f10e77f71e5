"""What the core knows of the log: where it starts and ends, its epochs and snapshots. No bytes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kvorum.raft.basics import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch


class EpochStart(NamedTuple):
    """An epoch and the offset of its first record."""

    epoch: int
    start_offset: int


class FetchVerdict(Enum):
    """What the position of a fetching replica is to this log."""

    VALID = "valid"
    DIVERGING = "diverging"
    SNAPSHOT = "snapshot"


@dataclass(slots=True)
class LogView:
    """A mirror of the log that the shell keeps; every change of the one is made to the other.

    `durable_end_offset` is how far the log would survive a power cut.
    """

    start_offset: int = 0
    end_offset: int = 0
    durable_end_offset: int = 0
    epochs: list[EpochStart] = field(default_factory=list[EpochStart])
    snapshots: list[OffsetAndEpoch] = field(default_factory=list[OffsetAndEpoch])

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, of the snapshot where there is none, or 0."""
        if self.epochs:
            return self.epochs[-1].epoch
        return self.latest_snapshot.epoch if self.latest_snapshot is not None else 0

    @property
    def end(self) -> OffsetAndEpoch:
        """The log's end as votes and fetches name it."""
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        """The snapshot that reaches furthest."""
        return max(self.snapshots, key=lambda known: (known.epoch, known.offset), default=None)

    @property
    def earliest_snapshot(self) -> OffsetAndEpoch | None:
        """The snapshot that reaches least far."""
        return min(self.snapshots, key=lambda known: (known.epoch, known.offset), default=None)

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
        """Note that the log is durable below `end_offset`; tell whether that is news."""
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
        """Note that the log goes on, empty, at the end of a snapshot that is durable."""
        self.start_offset = self.end_offset = self.durable_end_offset = snapshot_id.offset
        self.epochs.clear()
        self.snapshots = [snapshot_id]

    def add_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Note a finished snapshot."""
        if snapshot_id not in self.snapshots:
            self.snapshots.append(snapshot_id)

    def start_moved(self, start_offset: int, snapshots: Iterable[OffsetAndEpoch]) -> None:
        """Note that older records and snapshots were given up; `snapshots` are what is left."""
        self.start_offset = max(self.start_offset, start_offset)
        self.snapshots = list(snapshots)
        older = [entry for entry in self.epochs if entry.start_offset <= self.start_offset]
        if older:
            first = EpochStart(older[-1].epoch, self.start_offset)
            self.epochs = [first, *self.epochs[len(older) :]]

    def end_offset_for(self, epoch: int) -> OffsetAndEpoch:
        """Return the largest epoch not above `epoch` and the offset where it ends.

        For an epoch above all of the log's, that is the log's end and last epoch.
        """
        above = bisect_right(self.epochs, epoch, key=lambda entry: entry.epoch)
        if above == len(self.epochs):
            return self.end
        end_offset = self.epochs[above].start_offset
        if above > 0:
            return OffsetAndEpoch(end_offset, self.epochs[above - 1].epoch)
        earliest = self.earliest_snapshot
        if earliest is not None and earliest.offset == end_offset:
            return earliest
        return OffsetAndEpoch(end_offset, epoch)

    def judge(self, position: OffsetAndEpoch) -> tuple[FetchVerdict, OffsetAndEpoch]:
        """Judge where another replica wants to go on: here, after truncating, or by a snapshot.

        The position returned is where to go on, where the other's log diverges, or the snapshot.
        """
        if self.start_offset == 0 and position.offset == 0:
            return FetchVerdict.VALID, position
        earliest, latest = self.earliest_snapshot, self.latest_snapshot
        if earliest is not None and latest is not None:
            is_other_start = (
                position.offset == self.start_offset and position.epoch != earliest.epoch
            )
            if (
                position.offset < self.start_offset
                or is_other_start
                or position.epoch < earliest.epoch
            ):
                return FetchVerdict.SNAPSHOT, latest
        end = self.end_offset_for(position.epoch)
        if end.epoch != position.epoch or end.offset < position.offset:
            return FetchVerdict.DIVERGING, end
        if latest is not None and not self._is_vouched_for(position):
            return FetchVerdict.SNAPSHOT, latest
        return FetchVerdict.VALID, position

    def _is_vouched_for(self, position: OffsetAndEpoch) -> bool:
        """Tell whether the epoch of the record before `position` is known here.

        What the first epoch's start was is forgotten when the log's start moves. After a restart
        the log may reach further back than that, and then only a snapshot that ends right there
        knows the epoch. Kafka takes the other's word for it.
        """
        is_within = bool(self.epochs) and position.offset > self.epochs[0].start_offset
        return is_within or position in self.snapshots
