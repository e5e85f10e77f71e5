"""The checkpoint files of a log directory: one offset per partition (Kafka's OffsetCheckpointFile).

Each is a text file: version, number of entries, and a line ``topic partition offset`` for each.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kvorum.storage.errors import CorruptFileError, UnknownVersionError
from kvorum.storage.files import FileSystem, read_if_there, replace_durably
from kvorum.storage.topic_partition import TopicPartition

_VERSION = 0
RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT: Final = "cleaner-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
_FIELDS: Final = 3


def encode_checkpoint(entries: Sequence[str]) -> bytes:
    """Return the bytes of a checkpoint file that holds the given lines."""
    return "".join(f"{line}\n" for line in (_VERSION, len(entries), *entries)).encode()


def decode_checkpoint(data: bytes, file: Path, *, advice: str) -> list[str]:
    """Return the entry lines of a checkpoint file; an empty file has none, as in Kafka."""
    lines = data.decode("utf-8", "replace").splitlines()
    if not lines:
        return []
    version = _number(lines[0], file, advice)
    if version != _VERSION:
        problem = f"unrecognised version {version}, expected {_VERSION}"
        raise UnknownVersionError(problem, file=file, advice=advice)
    count = _number(lines[1], file, advice) if len(lines) > 1 else 0
    entries = lines[2:]
    if len(entries) != count:
        problem = f"{count} entries announced, {len(entries)} found"
        raise CorruptFileError(problem, file=file, advice=advice)
    return entries


def _number(line: str, file: Path, advice: str) -> int:
    try:
        return int(line)
    except ValueError as error:
        problem = f"malformed line {line!r}"
        raise CorruptFileError(problem, file=file, advice=advice) from error


class OffsetCheckpointFile:
    """One checkpoint file; `advice` is for an operator who finds it damaged."""

    def __init__(self, path: Path, files: FileSystem, *, advice: str) -> None:
        self.path = path
        self._files = files
        self._advice = advice
        self._partitions: frozenset[TopicPartition] = frozenset()

    def has(self, topic_partition: TopicPartition) -> bool:
        """Return whether the file has an offset of a partition, as it was last read or written."""
        return topic_partition in self._partitions

    def read(self) -> dict[TopicPartition, int]:
        """Return the offsets by partition, none without a file; may raise CorruptFileError."""
        data = read_if_there(self._files, self.path)
        if data is None:
            return {}
        offsets = dict(map(self._entry, decode_checkpoint(data, self.path, advice=self._advice)))
        self._partitions = frozenset(offsets)
        return offsets

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Store the offsets by partition durably."""
        lines = [f"{topic} {partition} {at}" for (topic, partition), at in sorted(offsets.items())]
        replace_durably(self._files, self.path, encode_checkpoint(lines))
        self._partitions = frozenset(offsets)

    def _entry(self, line: str) -> tuple[TopicPartition, int]:
        fields = line.split()
        try:
            if len(fields) != _FIELDS:
                raise ValueError
            return TopicPartition(fields[0], int(fields[1])), int(fields[2])
        except ValueError as error:
            problem = f"malformed line {line!r}"
            raise CorruptFileError(problem, file=self.path, advice=self._advice) from error
