"""Open the log of a partition as it was left: Kafka's LogLoader.

After a clean shutdown nothing of the log is read: the recovery point is its end, and segments and
indexes are loaded when they are first used. After a crash, segments that end below the recovery
point are taken as they are; from the one that holds it on, every batch is checked, the indexes are
rebuilt, and the log is cut off at the first invalid batch.

Records below the recovery point were durable once. A log that ends before it, or an invalid batch
there, is damage and raises CorruptLogError, where Kafka truncates the log silently. Everything
is checked before anything is changed.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from pathlib import Path

from kvorum.storage.errors import CorruptLogError
from kvorum.storage.files import FileSystem, disk_errors, list_if_there
from kvorum.storage.log.batch_header import NO_EPOCH, BatchHeader, continues
from kvorum.storage.log.disk_pace import DiskThreads
from kvorum.storage.log.epochs import EpochCheckpoint, LeaderEpochs
from kvorum.storage.log.interrupted_swap import NOT_INTERRUPTED, interrupted_swap
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.log.local_log_parts import LocalLogParts, RecoveryPointKeeper
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.log.producer_snapshot import ProducerSnapshotFiles
from kvorum.storage.log.recovery import TornTail
from kvorum.storage.log.segment import Segment
from kvorum.storage.log.segment_list import SegmentList, create_segment, find_leftovers
from kvorum.storage.log.segment_scan import BadBatchError, scan_batches
from kvorum.storage.names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, SWAP_SUFFIX, parse_offset_name

_ADVICE = "Restore the files, or remove the directory and let the replica fetch the log anew"
"""The advice to an operator where durable records are missing."""


def finish_interrupted_swap(directory: Path, files: FileSystem) -> list[str]:
    """Finish or undo the replacement of segments; return the names of the removed files.

    Raises CorruptLogError where a segment that was durable cannot be read; then nothing was
    changed. `interrupted_swap` has the rule.
    """
    names = list_if_there(files, directory)
    swap = interrupted_swap(names, lambda name: _end_offset(directory / name, files))
    if swap is NOT_INTERRUPTED:
        return []
    for name in swap.removed:
        with disk_errors(directory / name, "removing"):
            files.remove(directory / name)
    for name in swap.complete:
        with disk_errors(directory / name, "renaming"):
            files.rename(directory / name, directory / name.removesuffix(SWAP_SUFFIX))
    with disk_errors(directory, "syncing"):
        files.sync_directory(directory)
    return list(swap.removed)


def _end_offset(path: Path, files: FileSystem) -> int:
    """Return where the batches of a complete segment end; 0 for an empty one."""
    end_offset = 0
    with disk_errors(path, "reading"):
        file = files.open(path, read_only=True)
        try:
            for _, header in scan_batches(file, end=file.size()):
                end_offset = header.next_offset
        except BadBatchError as bad:
            raise CorruptLogError(
                f"{bad.problem}, in a segment that was complete",
                file=path,
                offset=bad.position,
                advice="Remove the *.swap files of that offset if all older segments are there",
            ) from bad
        finally:
            file.close()
    return end_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCheckpoint:
    """The stored facts about a log since its last use; the defaults are for a new log."""

    recovery_point: int = 0
    """Everything below this offset was durable."""

    log_start_offset: int = 0
    """Records below this offset were deleted."""

    had_clean_shutdown: bool = False
    """The log was closed in good order: it ends at the recovery point."""

    is_compacted: bool = True
    """Records may be missing between segments; else a later segment has outlived what came before.

    A power cut may take the end of a finished segment and leave the segment after it, because each
    reaches the disk when the operating system likes. (Kafka keeps such a segment, and the replica
    then takes itself for complete.)
    """


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """An open log, and the repairs that opening it needed."""

    log: LocalLog
    torn_tail: TornTail | None
    recovered_segments: tuple[Path, ...]
    unindexed_from: int | None
    """The base offset of the first segment that was read, or has no index; None without one."""
    removed_files: tuple[str, ...]


def load_local_log(
    directory: Path,
    *,
    files: FileSystem,
    config: LogConfig,
    checkpoint: LogCheckpoint,
    recovery_point_keeper: RecoveryPointKeeper,
    producer_snapshots: ProducerSnapshotFiles,
    now_ms: int,
    threads: DiskThreads | None = None,
) -> LoadedLog:
    """Open the log in `directory`, made if need be; `now_ms` is the wall clock.

    `threads` write what is appended while the disk is slow; without them every append is written at
    once. Raises CorruptLogError, another CorruptFileError, or DiskError; then nothing was changed,
    except by a DiskError, and that a replacement of segments that a crash interrupted was finished.
    """
    removed = finish_interrupted_swap(directory, files)
    names = list_if_there(files, directory)
    loader = _Loader(directory, files, config, checkpoint)
    try:
        loader.check(names)
        log = LocalLog(
            loader.put_right(recovery_point_keeper, producer_snapshots, find_leftovers(names)),
            files=files,
            config=config,
            threads=threads,
        )
        if log.log_end_offset < checkpoint.log_start_offset:
            # All remaining records were deleted before.
            log.truncate_fully_and_start_at(checkpoint.log_start_offset, now_ms=now_ms)
    except BaseException:
        loader.close()
        raise
    recovered = tuple(segment.path for segment in loader.recovered)
    unindexed = [segment.base_offset for segment in loader.recovered]
    unindexed += loader.bases_without_index
    return LoadedLog(
        log,
        loader.torn_tail,
        recovered,
        min(unindexed, default=None),
        (*removed, *find_leftovers(names)),
    )


class _Loader:
    """One opening of one directory: `check`, then `put_right`."""

    def __init__(
        self, directory: Path, files: FileSystem, config: LogConfig, checkpoint: LogCheckpoint
    ) -> None:
        self.recovered: list[Segment] = []
        self.torn_tail: TornTail | None = None
        self.bases_without_index: list[int] = []
        self._directory = directory
        self._files = files
        self._config = config
        self._checkpoint = checkpoint
        self._epoch_file = EpochCheckpoint(directory, files)
        self._epochs = LeaderEpochs()
        self._found: list[Segment] = []
        self._segments: list[Segment] = []
        self._behind_tail: list[Segment] = []

    def check(self, names: list[str]) -> None:
        """Check everything that has to be checked; change nothing."""
        for epoch, start_offset in self._epoch_file.read() or ():
            self._epochs.assign(epoch, start_offset)
        parsed = [parse_offset_name(name) for name in names]
        bases = [found[0] for found in parsed if found is not None and found[1] == LOG_SUFFIX]
        indexed = {
            found[0] for found in parsed if found is not None and found[1] == OFFSET_INDEX_SUFFIX
        }
        self.bases_without_index = [base for base in bases if base not in indexed]
        for base in bases:
            self._found.append(
                Segment(self._directory, base, files=self._files, config=self._config)
            )
        found = self._found
        recovery_point = self._checkpoint.recovery_point
        first = self._first_to_recover(bases, found)
        for segment, end_offset in zip(found[:first], [*bases[1:], recovery_point], strict=False):
            segment.adopt(end_offset, is_last=segment is found[-1])
        self._segments, rest = found[:first], found[first:]
        if rest:
            # The epochs of the recovered part are taken from its batches.
            self._epochs.truncate_from_end(rest[0].base_offset)
        self._recover(rest)
        self._check_end()

    def _first_to_recover(self, bases: list[int], segments: list[Segment]) -> int:
        """Return the index of the first segment to read; after the last without one."""
        if not segments:
            return 0
        recovery_point, last = self._checkpoint.recovery_point, segments[-1]
        with disk_errors(last.path, "opening"):
            is_empty = last.file.size() == 0
        fits = recovery_point == bases[-1] if is_empty else recovery_point > bases[-1]
        if self._checkpoint.had_clean_shutdown and fits:
            return len(segments)
        # A segment that was flushed whole before it was finished may end at the recovery point and
        # yet have indexes that are not durable, unless finishing one flushes it.
        bisect = bisect_right if self._config.is_flushed_on_roll else bisect_left
        return max(bisect(bases, recovery_point) - 1, 0)

    def _recover(self, segments: list[Segment]) -> None:
        """Read segments until the end, or to where the log must be cut off."""
        for index, segment in enumerate(segments):
            is_cut = self.torn_tail is not None
            before = self._segments[-1] if self._segments else None
            if before is not None:
                # Below the recovery point nothing can have been lost in this way.
                is_durable = before.end_offset < self._checkpoint.recovery_point
                is_deleted = segment.base_offset <= self._checkpoint.log_start_offset
                may_have_gaps = self._config.may_have_gaps and (
                    self._checkpoint.is_compacted or is_durable or is_deleted
                )
                is_cut |= not continues(
                    segment.base_offset, before.end_offset, may_have_gaps=may_have_gaps
                )
            if is_cut:
                self._behind_tail = segments[index:]
                return
            self._segments.append(segment)
            self.recovered.append(segment)
            self._scan(segment)

    def _scan(self, segment: Segment) -> None:
        with disk_errors(segment.path, "reading"):
            end = segment.file.size()
            try:
                for position, header in scan_batches(segment.file, end=end):
                    self._note(segment, position, header)
            except BadBatchError as bad:
                if segment.end_offset < self._checkpoint.recovery_point:
                    problem = f"{bad.problem}, though it was durable"
                    raise segment.damage(problem, bad.position) from bad
                self.torn_tail = TornTail(
                    file=segment.path,
                    position=bad.position,
                    size=end - bad.position,
                    offset=segment.end_offset,
                    problem=bad.problem,
                )

    def _note(self, segment: Segment, position: int, header: BatchHeader) -> None:
        """Account for a sound batch; raise BadBatchError if it does not continue the log."""
        if not segment.continues(header):
            problem = (
                f"a batch begins at offset {header.base_offset} instead of {segment.end_offset}"
            )
            # In a log that may have gaps, the offset of the batch before may be the wrong one.
            if self._config.may_have_gaps and header.base_offset < self._checkpoint.recovery_point:
                raise segment.damage(f"{problem}, though it was durable", position)
            raise BadBatchError(position, problem)
        if header.leader_epoch != NO_EPOCH:
            latest = self._epochs.latest_epoch or 0
            if header.leader_epoch < latest:
                problem = f"a batch of leader epoch {header.leader_epoch} follows one of {latest}"
                raise BadBatchError(position, problem)
            self._epochs.assign(header.leader_epoch, header.base_offset)
        segment.note_batch(position, header)

    def _check_end(self) -> None:
        start_offset = self._checkpoint.log_start_offset
        end_offset = self._segments[-1].end_offset if self._segments else start_offset
        if start_offset <= end_offset < self._checkpoint.recovery_point:
            raise CorruptLogError(
                f"the log ends at offset {end_offset}, "
                f"though everything below {self._checkpoint.recovery_point} was durable",
                file=self._segments[-1].path if self._segments else self._directory,
                advice=_ADVICE,
            )

    def put_right(
        self,
        recovery_point_keeper: RecoveryPointKeeper,
        producer_snapshots: ProducerSnapshotFiles,
        leftovers: list[str],
    ) -> LocalLogParts:
        """Make all the changes of an opening; it needs none unless a crash was before it."""
        with disk_errors(self._directory, "creating"):
            self._files.make_directory(self._directory)
        for name in leftovers:
            with disk_errors(self._directory / name, "removing"):
                self._files.remove(self._directory / name)
        self._mend_segments()
        start_offset = max(self._checkpoint.log_start_offset, self._segments[0].base_offset)
        end_offset = self._segments[-1].end_offset
        self._store_epochs(start_offset, end_offset)
        # A power cut may have left a state of producers that is later than the last record.
        producer_snapshots.tidy(
            keep=frozenset(segment.base_offset for segment in self._segments), end_offset=end_offset
        )
        segments = SegmentList(
            self._directory,
            self._segments,
            files=self._files,
            config=self._config,
            producer_snapshots=producer_snapshots,
        )
        return LocalLogParts(
            directory=self._directory,
            segments=segments,
            epochs=self._epochs,
            log_start_offset=min(start_offset, end_offset),
            recovery_point=end_offset,
            recovery_point_keeper=recovery_point_keeper,
            producer_snapshots=producer_snapshots,
        )

    def _mend_segments(self) -> None:
        """Cut off the torn tail, write indexes, and sync the segments that were read."""
        changed = [*self.recovered]
        while self._behind_tail:
            self._behind_tail.pop().mark_deleted()
        for segment in self.recovered:
            with disk_errors(segment.path, "reading"):
                if segment.file.size() > segment.size:
                    segment.cut_file()
            segment.store_indexes()
        if not self._segments:
            base_offset = self._checkpoint.log_start_offset
            created = create_segment(
                self._directory, base_offset, files=self._files, config=self._config
            )
            self._segments.append(created)
            changed.append(created)
        for segment in changed:
            segment.sync_with_indexes()
        if changed:
            with disk_errors(self._directory, "syncing"):
                self._files.sync_directory(self._directory)
                self._files.sync_directory(self._directory.parent)

    def _store_epochs(self, start_offset: int, end_offset: int) -> None:
        """Remove epochs that begin outside the log, and write the file if it differs."""
        self._epochs.truncate_from_end(end_offset)
        self._epochs.truncate_from_start(start_offset)
        stored = self._epoch_file.read()
        if stored is None or stored != self._epochs.entries:
            self._epoch_file.write(self._epochs.entries)

    def close(self) -> None:
        """Close all files."""
        for segment in (*self._found, *self._segments):
            segment.close()
