"""What happens when a log directory is opened, in order, and the report of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kvorum.storage.epochs import EpochCheckpoint, EpochStart, LeaderEpochs
from kvorum.storage.files import FileSystem, disk_errors
from kvorum.storage.flushed_offset import FlushedOffsetFile
from kvorum.storage.log_config import LogConfig
from kvorum.storage.partition_metadata import ensure_partition_metadata
from kvorum.storage.producer_snapshot import remove_producer_snapshots
from kvorum.storage.recovery import TornTail, recover_segments
from kvorum.storage.segment_list import SegmentList, remove_leftovers
from kvorum.storage.snapshots import SnapshotStore


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What opening a directory had to put right; for the node to log."""

    torn_tail: TornTail | None
    rebuilt_indexes: tuple[Path, ...]
    rewrote_epochs: bool
    removed_files: tuple[str, ...]

    def lines(self) -> list[str]:
        """Say it in sentences an operator can read, most important first."""
        lines: list[str] = []
        if self.torn_tail is not None:
            torn = self.torn_tail
            lines.append(
                f"Cut {torn.size} bytes off the end of {torn.file} at byte {torn.position}, "
                f"offset {torn.offset}: {torn.problem}; they were never acknowledged."
            )
        if self.rewrote_epochs:
            lines.append("Wrote leader-epoch-checkpoint anew from the log.")
        lines += [f"Rebuilt {path}." for path in self.rebuilt_indexes]
        lines += [f"Removed {name}." for name in self.removed_files]
        return lines


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """The parts that make up an open log."""

    directory: Path
    segments: SegmentList
    epochs: LeaderEpochs
    snapshots: SnapshotStore
    report: RecoveryReport


def open_directory(directory: Path, *, files: FileSystem, config: LogConfig) -> OpenedLog:
    """Recover segments, epochs and snapshots of `directory`, and make them durable.

    The log starts at its oldest segment. Files that a former run had marked as deleted go, also
    partial snapshots and such as lie below the start. Raises before anything but those is changed
    where the log is damaged, a snapshot is missing, or partition.metadata is another topic's.
    """
    with disk_errors(directory, "creating"):
        files.make_directory(directory)
    removed = remove_leftovers(directory, files)
    ensure_partition_metadata(directory, files)
    epoch_file = EpochCheckpoint(directory, files)
    stored_epochs = epoch_file.read()
    recovered = recover_segments(
        directory,
        files=files,
        config=config,
        flushed_offset=FlushedOffsetFile(directory, files).read(),
        stored_epochs=stored_epochs or (),
    )
    segments = SegmentList(directory, recovered.segments, files=files, config=config)
    try:
        snapshots = SnapshotStore(directory, files)
        removed += snapshots.load(log_start_offset=segments.all[0].base_offset)
        _forget_older_epochs(recovered.epochs, stored_epochs or (), segments)
        rewrote_epochs = recovered.epochs.entries != (stored_epochs or ())
        if rewrote_epochs or stored_epochs is None:
            epoch_file.write(recovered.epochs.entries)
        _make_durable(directory, segments, files)
        remove_producer_snapshots(
            directory,
            files,
            keep=frozenset(segment.base_offset for segment in segments.all),
            end_offset=segments.active.end_offset,
        )
    except BaseException:
        segments.close()
        raise
    report = RecoveryReport(
        torn_tail=recovered.torn_tail,
        rebuilt_indexes=recovered.rebuilt_indexes,
        rewrote_epochs=rewrote_epochs,
        removed_files=tuple(removed),
    )
    return OpenedLog(directory, segments, recovered.epochs, snapshots, report)


def _forget_older_epochs(
    epochs: LeaderEpochs, stored: tuple[EpochStart, ...], segments: SegmentList
) -> None:
    """Let the epochs begin where the stored ones do.

    Before the restart the log started there, at a snapshot; the oldest segment reaches further
    back, but older epochs were given up for good, as Kafka does.
    """
    first, end = segments.all[0].base_offset, segments.active.end_offset
    if not stored or not first < stored[0].start_offset < end:
        return
    at_start = [entry for entry in epochs.entries if entry.start_offset <= stored[0].start_offset]
    if at_start and at_start[-1].epoch == stored[0].epoch:
        epochs.truncate_from_start(stored[0].start_offset)


def _make_durable(directory: Path, segments: SegmentList, files: FileSystem) -> None:
    """Sync what was found: after a crash of the process it may only be in the system's memory."""
    for segment in segments.all:
        segment.sync_with_indexes()
    with disk_errors(directory, "syncing"):
        files.sync_directory(directory)
        files.sync_directory(directory.parent)
