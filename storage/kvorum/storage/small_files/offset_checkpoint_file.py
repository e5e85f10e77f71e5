"""The checkpoint files of a log directory: one offset per partition (Kafka's OffsetCheckpointFile).

Each is a text file: version, number of entries, and a line ``topic partition offset`` for each.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from kvorum.storage.errors import CorruptFileError, UnknownVersionError, shortened
from kvorum.storage.files import FileSystem, read_if_there, replace_durably
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.java_text import java_fields, java_lines, parse_java_integer

_VERSION = 0
RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT: Final = "cleaner-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
Entry = TypeVar("Entry")
Value = TypeVar("Value")


def encode_checkpoint(entries: Sequence[str]) -> bytes:
    """Return the bytes of a checkpoint file that holds the given lines."""
    return "".join(f"{line}\n" for line in (_VERSION, len(entries), *entries)).encode()


def decode_checkpoint(
    data: bytes, file: Path, entry_of: Callable[[list[str]], Entry], *, advice: str
) -> list[Entry]:
    """Return the entries of a checkpoint file; an empty file has none, as in Kafka.

    `entry_of` makes an entry of the fields of a line, and raises ValueError where it cannot. Raises
    CorruptFileError and UnknownVersionError.
    """
    try:
        lines = java_lines(data)
    except UnicodeDecodeError as error:
        raise CorruptFileError("not UTF-8", file=file, advice=advice) from error

    def read(line: str, value_of: Callable[[str], Value]) -> Value:
        try:
            return value_of(line)
        except ValueError as error:
            problem = f"malformed line {shortened(line)!r}"
            raise CorruptFileError(problem, file=file, advice=advice) from error

    if not lines:
        return []
    version = read(lines[0], _number)
    if version != _VERSION:
        problem = f"unrecognised version {version}, expected {_VERSION}"
        raise UnknownVersionError(problem, file=file, advice=advice)
    count = read(lines[1], _number) if len(lines) > 1 else 0
    entries = [read(line, lambda text: entry_of(java_fields(text))) for line in lines[2:]]
    if len(entries) != count:
        problem = f"{count} entries announced, {len(entries)} found"
        raise CorruptFileError(problem, file=file, advice=advice)
    return entries


def _number(line: str) -> int:
    return parse_java_integer(line, bits=32)


def decode_offsets(data: bytes, file: Path, *, advice: str) -> dict[TopicPartition, int]:
    """Return the offsets of a checkpoint by partition; a later entry wins, as in Kafka.

    Raises CorruptFileError and UnknownVersionError.
    """
    return dict(decode_checkpoint(data, file, _offset_of, advice=advice))


def _offset_of(fields: list[str]) -> tuple[TopicPartition, int]:
    topic, partition, offset = fields
    topic_partition = TopicPartition(topic, parse_java_integer(partition, bits=32))
    return topic_partition, parse_java_integer(offset, bits=64)


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
        offsets = decode_offsets(data, self.path, advice=self._advice)
        self._partitions = frozenset(offsets)
        return offsets

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Store the offsets by partition durably."""
        lines = [f"{topic} {partition} {at}" for (topic, partition), at in sorted(offsets.items())]
        replace_durably(self._files, self.path, encode_checkpoint(lines))
        self._partitions = frozenset(offsets)
