"""The parts of which a partition's log is made, and the store of its recovery point."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kvorum.storage.log.epochs import LeaderEpochs
from kvorum.storage.log.producer_snapshot import ProducerSnapshotFiles
from kvorum.storage.log.segment_list import SegmentList


class RecoveryPointKeeper(Protocol):
    """The store of a log's recovery point from one start to the next."""

    def write(self, offset: int, *, durably: bool) -> None:
        """Store `offset`; with `durably` return only once it would survive a power cut.

        A flush does not store it durably: an older point may be found after a power cut, but never
        one that is ahead of the log. A removal of records and `close` store it durably.
        """
        ...

    def close(self) -> None:
        """Close the store."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLogParts:
    """The parts of a log, checked and repaired by the code that opened its directory."""

    directory: Path
    segments: SegmentList
    epochs: LeaderEpochs
    log_start_offset: int
    recovery_point: int
    recovery_point_keeper: RecoveryPointKeeper
    producer_snapshots: ProducerSnapshotFiles
