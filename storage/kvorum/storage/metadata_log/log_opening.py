"""The steps of opening a log directory, in order, and their report."""

from pathlib import Path
from typing import NamedTuple

from kvorum.storage.files import FileSystem, disk_errors, list_if_there
from kvorum.storage.log.epochs import EpochCheckpoint, LeaderEpochs
from kvorum.storage.log.local_log_parts import LocalLogParts
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.log.producer_snapshot import ProducerSnapshotFiles, encode_producer_snapshot
from kvorum.storage.log.recovery import CheckedSegments, TornTail, check_segments
from kvorum.storage.log.segment_list import SegmentList, create_segment, find_leftovers
from kvorum.storage.metadata_log.flushed_offset import FlushedOffsetFile
from kvorum.storage.metadata_log.snapshot_reader import check_snapshot
from kvorum.storage.metadata_log.snapshots import SnapshotStore
from kvorum.storage.small_files.partition_metadata import (
    check_partition_metadata,
    write_partition_metadata,
)
from kvorum.wire.valid_offset_and_epoch import EpochStart


class RecoveryReport(NamedTuple):
    """The repairs that opening a directory needed; the node logs them."""

    torn_tail: TornTail | None
    rebuilt_indexes: tuple[Path, ...]
    rewrote_epochs: bool
    removed_files: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return sentences for the operator, the most important first."""
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


class OpenedLog(NamedTuple):
    """The parts that make up an open log."""

    parts: LocalLogParts
    snapshots: SnapshotStore
    report: RecoveryReport


class CheckedDirectory(NamedTuple):
    """A directory that may be opened: everything was checked, and nothing was changed."""

    directory: Path
    segments: CheckedSegments
    stored_epochs: tuple[EpochStart, ...] | None
    snapshots: SnapshotStore
    has_partition_metadata: bool
    to_remove: tuple[str, ...]


def open_directory(directory: Path, *, files: FileSystem, config: LogConfig) -> OpenedLog:
    """Recover segments, epochs and snapshots of `directory`, and make them durable.

    The log starts at its oldest segment. Files that an earlier run marked as deleted are removed,
    and so are partial snapshots and those below the start. Raises before anything is changed where
    the log or its latest snapshot is damaged, a snapshot is missing, or partition.metadata is that
    of another topic: a refused start must not remove files that may save the directory.
    """
    checked = check_directory(directory, files=files, config=config)
    try:
        return _put_right(checked, files=files, config=config)
    except BaseException:
        checked.segments.close()
        raise


def check_directory(directory: Path, *, files: FileSystem, config: LogConfig) -> CheckedDirectory:
    """Check a directory for every problem; change nothing on disk."""
    leftovers = find_leftovers(list_if_there(files, directory))
    has_partition_metadata = check_partition_metadata(directory, files)
    stored_epochs = EpochCheckpoint(directory, files).read()
    segments = check_segments(
        directory,
        files=files,
        config=config,
        flushed_offset=FlushedOffsetFile(directory, files).read(),
        stored_epochs=stored_epochs or (),
    )
    try:
        snapshots = SnapshotStore(directory, files)
        useless = snapshots.load(log_start_offset=segments.start_offset)
        _check_latest_snapshot(snapshots)
    except BaseException:
        segments.close()
        raise
    return CheckedDirectory(
        directory=directory,
        segments=segments,
        stored_epochs=stored_epochs,
        snapshots=snapshots,
        has_partition_metadata=has_partition_metadata,
        to_remove=tuple(dict.fromkeys((*leftovers, *useless))),
    )


def _check_latest_snapshot(snapshots: SnapshotStore) -> None:
    """Raise CorruptSnapshotError unless the latest snapshot is whole.

    It replaces all records below its end, and may be about to replace the log.
    """
    latest = snapshots.latest()
    reader = None if latest is None else snapshots.open(latest)
    if reader is not None:
        try:
            check_snapshot(reader)
        finally:
            reader.close()


def _put_right(checked: CheckedDirectory, *, files: FileSystem, config: LogConfig) -> OpenedLog:
    """Make all the changes of a start."""
    directory = checked.directory
    with disk_errors(directory, "creating"):
        files.make_directory(directory)
    for name in checked.to_remove:
        with disk_errors(directory / name, "removing"):
            files.remove(directory / name)
    if not checked.has_partition_metadata:
        write_partition_metadata(directory, files)
    rebuilt_indexes = checked.segments.repair()
    producer_snapshots = ProducerSnapshotFiles(
        directory, files, lambda: encode_producer_snapshot({})
    )
    segments = SegmentList(
        directory,
        checked.segments.segments or [create_segment(directory, 0, files=files, config=config)],
        files=files,
        config=config,
        producer_snapshots=producer_snapshots,
    )
    rewrote_epochs = _store_epochs(checked, EpochCheckpoint(directory, files))
    _make_durable(directory, segments, files)
    producer_snapshots.tidy(
        keep=frozenset(segment.base_offset for segment in segments.all),
        end_offset=segments.active.end_offset,
    )
    report = RecoveryReport(
        torn_tail=checked.segments.torn_tail,
        rebuilt_indexes=tuple(rebuilt_indexes),
        rewrote_epochs=rewrote_epochs,
        removed_files=checked.to_remove,
    )
    parts = LocalLogParts(
        directory=directory,
        segments=segments,
        epochs=checked.segments.epochs,
        log_start_offset=segments.all[0].base_offset,
        recovery_point=segments.active.end_offset,
        recovery_point_keeper=FlushedOffsetFile(directory, files),
        producer_snapshots=producer_snapshots,
    )
    return OpenedLog(parts, checked.snapshots, report)


def _store_epochs(checked: CheckedDirectory, epoch_file: EpochCheckpoint) -> bool:
    """Write the epochs if the file differs; return whether it does."""
    stored, epochs = checked.stored_epochs, checked.segments.epochs
    _forget_older_epochs(epochs, stored or (), checked.segments)
    is_different = epochs.entries != (stored or ())
    if is_different or stored is None:
        epoch_file.write(epochs.entries)
    return is_different


def _forget_older_epochs(
    epochs: LeaderEpochs, stored: tuple[EpochStart, ...], segments: CheckedSegments
) -> None:
    """Let the epochs begin where the stored ones do.

    Before the restart the log started there, at a snapshot. The oldest segment may begin earlier,
    but older epochs stay removed, as in Kafka.
    """
    is_within = stored and segments.start_offset < stored[0].start_offset < segments.end_offset
    if not is_within:
        return
    at_start = [entry for entry in epochs.entries if entry.start_offset <= stored[0].start_offset]
    if at_start and at_start[-1].epoch == stored[0].epoch:
        epochs.truncate_from_start(stored[0].start_offset)


def _make_durable(directory: Path, segments: SegmentList, files: FileSystem) -> None:
    """Sync the files found: after a crash of the process they may only be in the page cache."""
    for segment in segments.all:
        segment.sync_with_indexes()
    with disk_errors(directory, "syncing"):
        files.sync_directory(directory)
        files.sync_directory(directory.parent)
