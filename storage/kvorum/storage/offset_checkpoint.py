"""A log directory's checkpoint of one offset for each partition (Kafka's OffsetCheckpointFile)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from kvorum.storage.checkpoint_file import decode_checkpoint, encode_checkpoint
from kvorum.storage.errors import CorruptFileError
from kvorum.storage.files import FileSystem, read_if_there, replace_durably

CLEANER_OFFSET_CHECKPOINT: Final = "cleaner-offset-checkpoint"
_ADVICE: Final = "Remove the file: what it says is then taken as unknown"


class TopicPartition(NamedTuple):
    """A topic by name, and the number of one of its partitions."""

    topic: str
    partition: int


class OffsetCheckpoint:
    """One such file: a line "topic partition offset" for each partition."""

    def __init__(self, path: Path, files: FileSystem) -> None:
        self.path = path
        self._files = files

    def read(self) -> dict[TopicPartition, int]:
        """Return the offsets; none where there is no file.

        Raises CorruptFileError for lines that are no entries, and UnknownVersionError.
        """
        data = read_if_there(self._files, self.path)
        lines = [] if data is None else decode_checkpoint(data, self.path, advice=_ADVICE)
        return dict(self._entry(line) for line in lines)

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the file durably."""
        lines = [f"{one.topic} {one.partition} {offset}" for one, offset in sorted(offsets.items())]
        replace_durably(self._files, self.path, encode_checkpoint(lines))

    def _entry(self, line: str) -> tuple[TopicPartition, int]:
        try:
            topic, partition, offset = line.split()
            return TopicPartition(topic, int(partition)), int(offset)
        except ValueError as error:
            problem = f"malformed line {line!r}"
            raise CorruptFileError(problem, file=self.path, advice=_ADVICE) from error
