"""The recovery of a log's segments: check every batch, cut a torn tail off, stop at damage.

Every start reads the whole log, as Kafka's raft log does, and rebuilds the indexes. Kafka cuts the
log at the first invalid batch and deletes what follows; here that happens only where no
acknowledged record can be lost.

**What may be missing after a crash.** A node acknowledges a batch only after syncing it, and a
new segment is created only after the old one was synced. So anything below the flushed offset was
whole on disk once, and only the end of the last segment can be torn.

**The difference between a tail and damage.** At the first invalid batch:

1. a later segment holds bytes: damage, for the segment was synced before that one was begun;
2. its offset is below the flushed offset (`flushed_offset`): damage, it was acknowledged;
3. a sound batch of this log follows after it: damage, for the end of a file is written in order;
4. the flushed offset is known and not above it: a torn tail, it was never acknowledged;
5. the flushed offset is unknown (Kafka wrote the directory): a torn tail only if it looks like one:
   the batch is cut off by the end of the file, and is not a whole batch whose length field alone
   is wrong; or the file ends in zeros that the file system put in place of unwritten blocks.
   Anything else, such as a last batch with all its bytes and a wrong checksum, may be an
   acknowledged batch with a flipped bit: damage.

A log that ends, whole, below its flushed offset is damage too, and so are leader epochs (they lie
outside a batch's checksum) that differ from the stored ones below it. Damage raises CorruptLogError
and changes nothing on disk; a torn tail is cut off and reported.
"""

from pathlib import Path
from typing import NamedTuple

from kvorum.storage.errors import CorruptLogError
from kvorum.storage.files import FileSystem, OpenFile, disk_errors, list_if_there
from kvorum.storage.log.batch_header import (
    HEADER_SIZE,
    MAGIC,
    LegacyHeader,
    checksum_matches,
    read_header,
)
from kvorum.storage.log.epochs import LeaderEpochs
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.log.segment import Segment
from kvorum.storage.log.segment_scan import CHUNK_BYTES, BadBatchError, scan_batches
from kvorum.storage.log.torn_tail import looks_torn
from kvorum.storage.names import LOG_SUFFIX, parse_offset_name
from kvorum.wire.valid_offset_and_epoch import EpochStart


class TornTail(NamedTuple):
    """Bytes that were cut off the end of the log because they were never acknowledged."""

    file: Path
    position: int
    size: int
    offset: int
    problem: str


class CheckedSegments(NamedTuple):
    """The segments of a log, oldest first: checked, and not changed yet.

    `behind_tail` are the empty segments that follow a torn batch.
    """

    segments: list[Segment]
    behind_tail: list[Segment]
    epochs: LeaderEpochs
    torn_tail: TornTail | None

    @property
    def start_offset(self) -> int:
        """The offset at which the oldest segment begins; 0 without one."""
        return self.segments[0].base_offset if self.segments else 0

    @property
    def end_offset(self) -> int:
        """One more than the offset of the last sound record."""
        return self.segments[-1].end_offset if self.segments else 0

    def repair(self) -> list[Path]:
        """Cut the torn tail off and repair the indexes; return the repaired ones."""
        while self.behind_tail:
            self.behind_tail.pop().mark_deleted()
        rebuilt: list[Path] = []
        for segment in self.segments:
            with disk_errors(segment.path, "reading"):
                if segment.file.size() > segment.size:
                    segment.cut_file()
            rebuilt += segment.store_indexes()
        return rebuilt

    def close(self) -> None:
        """Close all files."""
        for segment in (*self.segments, *self.behind_tail):
            segment.close()


def check_segments(
    directory: Path,
    *,
    files: FileSystem,
    config: LogConfig,
    flushed_offset: int | None,
    stored_epochs: tuple[EpochStart, ...],
) -> CheckedSegments:
    """Open every segment of `directory` and check every batch; changes nothing on disk.

    `flushed_offset` and `stored_epochs` are the contents of the directory's small files. Raises
    CorruptLogError by the rules of this module; then every file is closed.
    """
    names = [parse_offset_name(name) for name in list_if_there(files, directory)]
    bases = [name[0] for name in names if name is not None and name[1] == LOG_SUFFIX]
    recovery = _Recovery(directory, files, config, flushed_offset, stored_epochs)
    try:
        return recovery.run(bases)
    except BaseException:
        for segment in recovery.segments:
            segment.close()
        raise


class _Recovery:
    """One pass over the segments of a directory."""

    def __init__(
        self,
        directory: Path,
        files: FileSystem,
        config: LogConfig,
        flushed_offset: int | None,
        stored_epochs: tuple[EpochStart, ...],
    ) -> None:
        self.segments: list[Segment] = []
        self._directory = directory
        self._files = files
        self._config = config
        self._flushed_offset = flushed_offset
        self._stored_epochs = stored_epochs
        self._epochs = LeaderEpochs()
        self._torn_tail: TornTail | None = None

    def run(self, bases: list[int]) -> CheckedSegments:
        """Check everything."""
        for base in bases:
            self.segments.append(
                Segment(self._directory, base, files=self._files, config=self._config)
            )
        for index, segment in enumerate(self.segments):
            self._check_neighbour(index)
            self._scan(segment, later=self.segments[index + 1 :])
            if self._torn_tail is not None:
                break
        self._check_epochs()
        torn = self._torn_tail
        paths = [segment.path for segment in self.segments]
        count = len(paths) if torn is None else paths.index(torn.file) + 1
        kept, behind_tail = self.segments[:count], self.segments[count:]
        self._check_end(kept)
        return CheckedSegments(kept, behind_tail, self._epochs, torn)

    def _check_neighbour(self, index: int) -> None:
        """Check that a segment begins where the one before it ended."""
        if index == 0:
            return
        segment, before = self.segments[index], self.segments[index - 1]
        if before.end_offset != segment.base_offset:
            problem = (
                f"the log has no offsets {before.end_offset} to {segment.base_offset - 1}: "
                f"{before.path.name} ends before them"
            )
            raise segment.damage(problem, 0)

    def _scan(self, segment: Segment, *, later: list[Segment]) -> None:
        """Check and index the batches of one segment up to its end or its torn tail."""
        with disk_errors(segment.path, "reading"):
            end = segment.file.size()
            try:
                for position, header in scan_batches(segment.file, end=end):
                    if isinstance(header, LegacyHeader):
                        problem = f"batch format {header.magic} instead of {MAGIC}"
                        raise BadBatchError(position, problem)
                    if header.base_offset != segment.end_offset:
                        problem = (
                            f"a batch begins at offset {header.base_offset} "
                            f"instead of {segment.end_offset}"
                        )
                        raise segment.damage(problem, position)
                    self._note_epoch(segment, position, header.leader_epoch)
                    segment.note_batch(position, header)
            except BadBatchError as bad:
                self._judge(segment, bad, end=end, later=later)

    def _note_epoch(self, segment: Segment, position: int, epoch: int) -> None:
        latest = self._epochs.latest_epoch or 0
        if epoch < latest:
            problem = f"a batch of leader epoch {epoch} follows one of epoch {latest}"
            raise segment.damage(problem, position)
        self._epochs.assign(epoch, segment.end_offset)

    def _judge(
        self, segment: Segment, bad: BadBatchError, *, end: int, later: list[Segment]
    ) -> None:
        """Treat the rest of `segment` as a torn tail, or raise; see the rules of this module."""
        offset = segment.end_offset
        if any(other.file.size() > 0 for other in later):
            raise segment.damage(f"{bad.problem}, and later segments exist", bad.position)
        if self._flushed_offset is not None and offset < self._flushed_offset:
            problem = (
                f"{bad.problem}, though everything below offset {self._flushed_offset} was durable"
            )
            raise segment.damage(problem, bad.position)
        following = _sound_batch_after(segment.file, bad.position, end=end, offset=offset)
        if following is not None:
            problem = f"{bad.problem}, and a sound batch follows at byte {following}"
            raise segment.damage(problem, bad.position)
        rest = segment.file.read_at(bad.position, end - bad.position)
        if self._flushed_offset is None and not looks_torn(memoryview(rest)):
            problem = f"{bad.problem}, and the batch may have been acknowledged"
            raise segment.damage(problem, bad.position)
        self._torn_tail = TornTail(
            file=segment.path,
            position=bad.position,
            size=end - bad.position,
            offset=offset,
            problem=bad.problem,
        )

    def _check_end(self, segments: list[Segment]) -> None:
        """Check that nothing below the flushed offset is missing at the end of the log."""
        flushed_offset = self._flushed_offset
        end_offset = segments[-1].end_offset if segments else 0
        if flushed_offset is not None and end_offset < flushed_offset:
            raise CorruptLogError(
                f"the log ends at offset {end_offset}, "
                f"though everything below offset {flushed_offset} was durable",
                file=segments[-1].path if segments else self._directory,
                offset=segments[-1].size if segments else None,
                advice=(
                    "Records that this node acknowledged are gone. Restore the file, or empty the "
                    "directory and let the node fetch the log anew. If another program shortened "
                    "the log on purpose since, remove kvorum-flushed-offset"
                ),
            )

    def _check_epochs(self) -> None:
        """Check that the epochs of durable batches equal the stored ones.

        The epochs are stored before a batch counts as durable. Below the first stored start they
        may have been dropped while the oldest segment still holds older batches.
        """
        if not self._stored_epochs or self._flushed_offset is None:
            return
        log_start_offset = self.segments[0].base_offset if self.segments else 0
        first = max(log_start_offset, self._stored_epochs[0].start_offset)
        stored = _epochs_between(self._stored_epochs, first, self._flushed_offset)
        found = _epochs_between(self._epochs.entries, first, self._flushed_offset)
        if stored == found:
            return
        start_offset = min(
            (entry.start_offset for entry in set(stored) ^ set(found)), default=first
        )
        raise CorruptLogError(
            f"from offset {start_offset} on, the leader epochs of the batches differ from those "
            "in leader-epoch-checkpoint",
            file=self._directory,
            advice="Restore the directory, or empty it and let the node fetch the log anew",
        )


def _epochs_between(
    entries: tuple[EpochStart, ...], first: int, end: int
) -> tuple[EpochStart, ...]:
    """Return the epochs from offset `first` up to `end`; the first one begins at `first`."""
    if first >= end:
        return ()
    before = [entry for entry in entries if entry.start_offset <= first]
    in_force = (EpochStart(before[-1].epoch, first),) if before else ()
    return in_force + tuple(entry for entry in entries if first < entry.start_offset < end)


def _sound_batch_after(file: OpenFile, position: int, *, end: int, offset: int) -> int | None:
    """Return where a whole batch of offset `offset` or above begins behind `position`, or None.

    Every byte is tried as the start of a header; only a matching checksum counts.
    """
    start = position + 1
    while end - start >= HEADER_SIZE:
        chunk = memoryview(file.read_at(start, min(CHUNK_BYTES, end - start)))
        found = _sound_batch_in(file, chunk, start, end=end, offset=offset)
        if found is not None:
            return found
        start += max(len(chunk) - HEADER_SIZE + 1, 1)
    return None


def _sound_batch_in(
    file: OpenFile, chunk: memoryview, start: int, *, end: int, offset: int
) -> int | None:
    """Return where in `chunk`, which begins at byte `start`, a whole later batch begins."""
    data = bytes(chunk)
    magic_place = data.find(MAGIC, 16)
    while magic_place >= 0:
        place = magic_place - 16
        if len(data) - place < HEADER_SIZE:
            return None
        header = read_header(data, place)
        fits = header.problem() is None and start + place + header.size <= end
        if fits and header.base_offset >= offset:
            batch = memoryview(file.read_at(start + place, header.size))
            if checksum_matches(batch, header.crc):
                return start + place
        magic_place = data.find(MAGIC, magic_place + 1)
    return None
