"""The checkpoint files of a log directory: one offset per partition (Kafka's OffsetCheckpointFile).

Each is a text file: version, number of entries, and a line ``topic partition offset`` for each.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kvorum.storage.errors import CorruptFileError, UnknownVersionError, shortened
from kvorum.storage.files import FileSystem, read_if_there, replace_durably
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.java_text import java_lines, parse_java_integer

_VERSION = 0
RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT: Final = "cleaner-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
_FIELDS: Final = 3
_BLANK: Final = " \t\x0b\f"
_BLANKS: Final = re.compile(f"[{_BLANK}]+")


def encode_checkpoint(entries: Sequence[str]) -> bytes:
    """Return the bytes of a checkpoint file that holds the given lines."""
    return "".join(f"{line}\n" for line in (_VERSION, len(entries), *entries)).encode()


def decode_checkpoint(data: bytes, file: Path, *, fields: int, advice: str) -> list[list[str]]:
    """Return the entries of a checkpoint file, each of so many fields; an empty file has none.

    Raises CorruptFileError and UnknownVersionError.
    """
    lines = java_lines(data)
    if not lines:
        return []
    version = _number(lines[0], file, advice)
    if version != _VERSION:
        problem = f"unrecognised version {version}, expected {_VERSION}"
        raise UnknownVersionError(problem, file=file, advice=advice)
    count = _number(lines[1], file, advice) if len(lines) > 1 else 0
    entries = [_BLANKS.split(line.rstrip(_BLANK)) for line in lines[2:]]
    for line, entry in zip(lines[2:], entries, strict=True):
        if len(entry) != fields:
            raise malformed_line(line, file, advice)
    if len(entries) != count:
        problem = f"{count} entries announced, {len(entries)} found"
        raise CorruptFileError(problem, file=file, advice=advice)
    return entries


def _number(line: str, file: Path, advice: str) -> int:
    try:
        return parse_java_integer(line, bits=32)
    except ValueError as error:
        raise malformed_line(line, file, advice) from error


def malformed_line(line: str, file: Path, advice: str) -> CorruptFileError:
    """Return the error of a line that is not an entry."""
    return CorruptFileError(f"malformed line {shortened(line)!r}", file=file, advice=advice)


def decode_offsets(data: bytes, file: Path, *, advice: str) -> dict[TopicPartition, int]:
    """Return the offsets of a checkpoint by partition; a later entry wins, as in Kafka.

    Raises CorruptFileError and UnknownVersionError.
    """
    offsets: dict[TopicPartition, int] = {}
    for entry in decode_checkpoint(data, file, fields=_FIELDS, advice=advice):
        topic, partition, offset = entry
        try:
            topic_partition = TopicPartition(topic, parse_java_integer(partition, bits=32))
            offsets[topic_partition] = parse_java_integer(offset, bits=64)
        except ValueError as error:
            raise malformed_line(" ".join(entry), file, advice) from error
    return offsets


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
