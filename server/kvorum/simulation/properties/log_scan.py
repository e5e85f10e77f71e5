"""The reader of segments straight from a simulated disk, of running and of stopped nodes.

It shares nothing with the log's own code but the format of a batch header, so that it can disprove
that code. It reads only the changes since the last look.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from kvorum.simulation.disk import SimulatedDisk
from kvorum.simulation.disk_files import DiskDirectory, DiskFile
from kvorum.storage.log.batch_header import HEADER_SIZE, checksum_matches, read_header
from kvorum.storage.names import parse_snapshot_name

_SUFFIX = ".log"


class ScannedBatch(NamedTuple):
    """One batch of a log, and the place of its bytes in its file."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: int
    is_control: bool
    position: int
    end_position: int


class _Segment:
    """One .log file as far as it has been read."""

    __slots__ = ("base_offset", "bases", "batches", "file", "generation", "name", "position")

    def __init__(self, name: str, file: DiskFile) -> None:
        self.name = name
        self.base_offset = int(name.removesuffix(_SUFFIX))
        self.file = file
        self.generation = file.generation
        self.position = 0
        self.batches: list[ScannedBatch] = []
        self.bases: list[int] = []

    @property
    def end_offset(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else self.base_offset

    def read_on(self) -> int | None:
        """Read the appended bytes; return the first new offset."""
        content = self.file.content
        if len(content) - self.position < HEADER_SIZE:
            return None
        first_new: int | None = None
        data = memoryview(content)
        try:
            while len(content) - self.position >= HEADER_SIZE:
                batch = self._next(data)
                if batch is None:
                    break
                first_new = batch.base_offset if first_new is None else first_new
                self.batches.append(batch)
                self.bases.append(batch.base_offset)
                self.position = batch.end_position
        finally:
            data.release()
        return first_new

    def _next(self, data: memoryview) -> ScannedBatch | None:
        header = read_header(data, self.position)
        end = self.position + header.size
        if header.problem() is not None or end > len(data):
            return None
        with data[self.position : end] as piece:
            if not checksum_matches(piece, header.crc):
                return None
        return ScannedBatch(
            header.base_offset,
            header.last_offset,
            header.leader_epoch,
            header.crc,
            header.is_control,
            self.position,
            end,
        )


class LogScan:
    """The batches in one log directory of one disk."""

    def __init__(self, disk: SimulatedDisk, directory: Path) -> None:
        self._disk = disk
        self._path = directory
        self._directory: DiskDirectory | None = None
        self._names_generation = -1
        self._segments: list[_Segment] = []

    def refresh(self) -> int | None:
        """Read the changes; return the lowest offset whose record may have changed, or None."""
        changed = self._take_names()
        for segment in self._segments:
            if segment.file.generation != segment.generation:
                changed = _lower(changed, self._read_again(segment))
            elif len(segment.file.content) > segment.position:
                changed = _lower(changed, segment.read_on())
        return changed

    def _take_names(self) -> int | None:
        directory = (
            self._disk.directory_at(self._path) if self._disk.has_directory(self._path) else None
        )
        if directory is self._directory and (
            directory is None or directory.generation == self._names_generation
        ):
            return None
        self._directory = directory
        names = {} if directory is None else directory.names
        self._names_generation = -1 if directory is None else directory.generation
        known = {(segment.name, id(segment.file)): segment for segment in self._segments}
        before = self._segments
        self._segments = [
            known.get((name, id(file))) or _Segment(name, file)
            for name, file in sorted(names.items())
            if name.endswith(_SUFFIX)
        ]
        # A removal at the front is retention; one that reaches beyond the new start is a change.
        first = self._segments[0].base_offset if self._segments else 0
        gone = [one for one in before if one not in self._segments and one.end_offset > first]
        return min((max(one.base_offset, first) for one in gone), default=None)

    def _read_again(self, segment: _Segment) -> int:
        old = segment.batches
        segment.generation, segment.position = segment.file.generation, 0
        segment.batches, segment.bases = [], []
        segment.read_on()
        same = 0
        for one, other in zip(old, segment.batches, strict=False):
            if one != other:
                break
            same += 1
        if same < len(old):
            return old[same].base_offset
        return old[-1].last_offset + 1 if old else segment.base_offset

    @property
    def start_offset(self) -> int:
        """The first offset that any file holds."""
        return self._segments[0].base_offset if self._segments else 0

    @property
    def end_offset(self) -> int:
        """The offset after the last record that can be read without a gap."""
        end = self.start_offset
        for segment in self._segments:
            if segment.base_offset != end:
                break
            end = segment.end_offset
        return end

    @property
    def kept_end_offset(self) -> int:
        """The offset below which log or snapshots hold everything.

        A log that a snapshot replaces does not exist for a moment before it begins again.
        """
        if self._segments or self._directory is None:
            return self.end_offset
        names = [parse_snapshot_name(name) for name in self._directory.names]
        return max(
            (name.id.offset for name in names if name is not None and not name.is_partial),
            default=0,
        )

    @property
    def durable_end_offset(self) -> int:
        """The offset below which everything would survive a power cut that loses all it can."""
        end = self.start_offset
        for segment in self._segments:
            is_named = (
                self._directory is not None
                and self._directory.durable_file(segment.name) is segment.file
            )
            if segment.base_offset != end or not is_named:
                break
            size = segment.file.durable_size
            whole = bisect_right(segment.batches, size, key=lambda batch: batch.end_position)
            if whole:
                end = segment.batches[whole - 1].last_offset + 1
            if whole < len(segment.batches):
                break
        return end

    def batches_from(self, offset: int) -> Iterator[ScannedBatch]:
        """Yield the batches from the one that holds `offset` on."""
        for segment in self._segments:
            if segment.end_offset > offset:
                first = max(bisect_right(segment.bases, offset) - 1, 0)
                yield from segment.batches[first:]

    def marks(self) -> dict[str, int]:
        """Return how many bytes of each file have been read, by its name."""
        return {segment.name: segment.position for segment in self._segments}

    def batches_behind(self, marks: Mapping[str, int]) -> Iterator[ScannedBatch]:
        """Yield the batches appended since `marks`, whatever offsets they contain now."""
        for segment in self._segments:
            read_bytes = marks.get(segment.name, 0)
            yield from (batch for batch in segment.batches if batch.position >= read_bytes)

    def batch_holding(self, offset: int) -> ScannedBatch | None:
        """Return the batch that holds `offset`."""
        found = next(self.batches_from(offset), None)
        return found if found is not None and found.base_offset <= offset else None

    def bytes_of(self, batch: ScannedBatch) -> bytes:
        """Return a batch's bytes on the disk."""
        for segment in self._segments:
            if segment.base_offset <= batch.base_offset < segment.end_offset:
                return bytes(segment.file.content[batch.position : batch.end_position])
        return b""


def _lower(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
