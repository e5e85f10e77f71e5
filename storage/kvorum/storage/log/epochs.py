"""Leader epochs and their start offsets: the leader-epoch-checkpoint file and its rules."""

from bisect import bisect_right
from itertools import pairwise
from pathlib import Path

from kvorum.storage.errors import CorruptFileError
from kvorum.storage.files import FileSystem, read_if_there, replace_durably
from kvorum.storage.small_files.offset_checkpoint_file import decode_checkpoint, encode_checkpoint
from kvorum.wire.java_text import parse_java_integer
from kvorum.wire.valid_offset_and_epoch import EpochStart

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
_ADVICE = "The file is derived from the log: remove it, and it is written anew at the next start"


class LeaderEpochs:
    """The epochs of a log, strictly increasing in epoch and in start offset."""

    def __init__(self) -> None:
        self._entries: list[EpochStart] = []

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        """All entries, oldest first."""
        return tuple(self._entries)

    @property
    def latest_epoch(self) -> int | None:
        """The highest epoch, or None without one."""
        return self._entries[-1].epoch if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` begins at `start_offset`.

        Entries that contradict it (a higher epoch, or a start at or after it) are removed.
        """
        if self._entries:
            latest = self._entries[-1]
            if epoch == latest.epoch and start_offset >= latest.start_offset:
                return
        while self._entries and (
            self._entries[-1].epoch >= epoch or self._entries[-1].start_offset >= start_offset
        ):
            self._entries.pop()
        self._entries.append(EpochStart(epoch, start_offset))

    def epoch_at(self, offset: int) -> int | None:
        """Return the epoch of `offset`, or None below the first known epoch."""
        above = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[above - 1].epoch if above > 0 else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove epochs that begin at or behind `end_offset`."""
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()

    def truncate_from_start(self, start_offset: int) -> None:
        """Let the epoch of `start_offset` begin there, and remove older ones."""
        before = self.entries
        older = [entry for entry in before if entry.start_offset <= start_offset]
        if older:
            self._entries = [EpochStart(older[-1].epoch, start_offset), *before[len(older) :]]

    def clear(self) -> None:
        """Remove all epochs."""
        self._entries = []


def decode_leader_epochs(data: bytes, file: Path) -> tuple[EpochStart, ...]:
    """Return the entries in `data`, the content of `file`.

    Raises CorruptFileError for lines that are no entries or do not increase, and
    UnknownVersionError.
    """
    entries = decode_checkpoint(data, file, _epoch_start_of, advice=_ADVICE)
    for one, next_one in pairwise(entries):
        if next_one.epoch <= one.epoch or next_one.start_offset <= one.start_offset:
            problem = f"epoch {next_one.epoch} does not come after {one.epoch}"
            raise CorruptFileError(problem, file=file, advice=_ADVICE)
    return tuple(entries)


def _epoch_start_of(fields: list[str]) -> EpochStart:
    epoch, start_offset = fields
    return EpochStart(parse_java_integer(epoch, bits=32), parse_java_integer(start_offset, bits=64))


class EpochCheckpoint:
    """The leader-epoch-checkpoint file of one log directory."""

    def __init__(self, directory: Path, files: FileSystem) -> None:
        self.path = directory / LEADER_EPOCH_CHECKPOINT
        self._files = files

    def read(self) -> tuple[EpochStart, ...] | None:
        """Return the stored entries, or None without a file; raises as the decoder does."""
        data = read_if_there(self._files, self.path)
        if data is None:
            return None
        return decode_leader_epochs(data, self.path)

    def write(self, entries: tuple[EpochStart, ...]) -> None:
        """Replace the file durably."""
        lines = [f"{entry.epoch} {entry.start_offset}" for entry in entries]
        replace_durably(self._files, self.path, encode_checkpoint(lines))
