"""The start of a fold of a cluster: a saved history, a snapshot, or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kvorum.spark.errors import DamagedFileError, LogFilesError
from kvorum.spark.files.damage import Damage
from kvorum.spark.files.find import FoundFiles, LogFile
from kvorum.spark.files.range_reader import read_range
from kvorum.spark.files.ranges import plan_ranges
from kvorum.spark.history import LogRecord, MetadataHistory
from kvorum.spark.history.errors import ContradictionError
from kvorum.spark.pipeline.batch_records import decoded_records
from kvorum.spark.pipeline.cluster_plan import FoldBegin
from kvorum.spark.pipeline.log_reading import Piece
from kvorum.spark.pipeline.log_tail import Tail
from kvorum.spark.pipeline.readable_replica import ENDLESS, ReadableReplica
from kvorum.spark.pipeline.replicas import Begin, begins_of


class FoldStart(NamedTuple):
    """A history, and the place in the log at which it goes on.

    `pieces` and `snapshot_count` are the records of the snapshot that it begins with.
    """

    begin: FoldBegin
    history: MetadataHistory
    next_offset: int
    tail: Tail | None
    pieces: list[Piece]
    snapshot_count: int


def first_start(
    replicas: Sequence[ReadableReplica], options: Mapping[str, Any], damages: list[Damage] | None
) -> FoldStart:
    """Return where the longest history of the reference begins, or else that of another replica.

    Snapshots that are damaged are passed over, and added to `damages`; where that is None, they
    raise `DamagedFileError`. Raises `LogFilesError` where there is nothing to begin with.
    """
    for readable in replicas:
        for begin in begins_of(readable.replica):
            start = _start_at(begin, options, damages)
            if start is not None:
                return start
    replica = replicas[0].replica
    raise LogFilesError(
        f"{replica.log_directory}: no whole log and no usable snapshot to begin with"
    )


class _DamagedSnapshotError(Exception):
    """A snapshot whose state cannot be used."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(damage.text)
        self.damage = damage


def _start_at(
    begin: Begin, options: Mapping[str, Any], damages: list[Damage] | None
) -> FoldStart | None:
    file = begin.snapshot
    if file is None:
        return FoldStart(FoldBegin.LOG, MetadataHistory(), 0, None, [], 0)
    counted = _CountedRecords(file, options)
    try:
        history = MetadataHistory.from_snapshot(
            counted.records(), end_offset=begin.offset, epoch=file.epoch
        )
    except _DamagedSnapshotError as error:
        found = error.damage
        if damages is None:
            raise DamagedFileError(
                file=found.path, offset=found.first_offset, reason=found.text
            ) from None
        damages.append(found)
        return None
    except ContradictionError as error:
        raise LogFilesError(f"{file.path}: {error}") from error
    (unit,) = counted.units
    pieces = [Piece(unit, 0, ENDLESS)]
    return FoldStart(FoldBegin.SNAPSHOT, history, begin.offset, None, pieces, counted.count)


class _CountedRecords:
    """The records of one snapshot, and how many have been read."""

    def __init__(self, file: LogFile, options: Mapping[str, Any]) -> None:
        self.units = plan_ranges(FoundFiles((file,), frozenset()), range_bytes=max(file.size, 1))
        self.count = 0
        self._options = options

    def records(self) -> Iterator[LogRecord]:
        """Yield the records; raises `_DamagedSnapshotError`."""
        for unit in self.units:
            for item in read_range(unit, file_system_options=self._options):
                if isinstance(item, Damage):
                    raise _DamagedSnapshotError(item)
                for record in decoded_records(unit.file.path, [item]):
                    if isinstance(record, Damage):
                        raise _DamagedSnapshotError(record)
                    self.count += 1
                    yield record
