"""The log of one replica: its records with their leader epochs, and how many are flushed."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """One record: the leader epoch in which it was written, and its value."""

    leader_epoch: int
    value: int


class ReplicaLog:
    """A log in memory of which the first `flushed` records survive the loss of power."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.flushed = 0
        self.high_watermark = 0
        self.checkpointed_high_watermark = 0

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return len(self.entries)

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last record, -1 where there is none."""
        return self.entries[-1].leader_epoch if self.entries else -1

    def flush(self) -> None:
        """Flush all records, and checkpoint the high watermark."""
        self.flushed = self.end_offset
        self.checkpointed_high_watermark = self.high_watermark

    def truncate(self, end_offset: int) -> None:
        """Drop the records at and behind an offset."""
        del self.entries[end_offset:]
        self.flushed = min(self.flushed, end_offset)
        self.high_watermark = min(self.high_watermark, end_offset)

    def restart(self, *, is_power_lost: bool) -> None:
        """Restore the state that a new process finds."""
        if is_power_lost:
            self.truncate(self.flushed)
        self.high_watermark = min(self.checkpointed_high_watermark, self.end_offset)

    def end_of_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to `leader_epoch`, and the offset behind its last record."""
        for offset in range(self.end_offset, 0, -1):
            entry = self.entries[offset - 1]
            if entry.leader_epoch <= leader_epoch:
                return entry.leader_epoch, offset
        return -1, 0
