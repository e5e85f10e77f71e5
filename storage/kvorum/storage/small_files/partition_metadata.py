"""The partition.metadata file: the id of the topic that a log directory belongs to."""

import re
from pathlib import Path

from kvorum.storage.errors import CorruptFileError, UnknownVersionError
from kvorum.storage.files import FileSystem, read_if_there, replace_durably
from kvorum.wire.java_text import JAVA_BLANKS, java_lines, parse_java_integer
from kvorum.wire.uuid_text import ZERO_UUID, uuid_from_text, uuid_to_text

PARTITION_METADATA = "partition.metadata"
METADATA_TOPIC_ID = bytes(15) + b"\x01"
_VERSION = 0
_SEPARATOR = re.compile(f":[{JAVA_BLANKS}]+")
_ADVICE = "Check that the directory is that of this partition"


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """Return the file's content; no newline at its end, as in Kafka."""
    return f"version: {_VERSION}\ntopic_id: {uuid_to_text(topic_id)}".encode()


def read_partition_metadata(directory: Path, files: FileSystem) -> bytes | None:
    """Return the topic id that a directory's file names, or None without a file."""
    path = directory / PARTITION_METADATA
    data = read_if_there(files, path)
    if data is None:
        return None
    return decode_partition_metadata(data, path)


def decode_partition_metadata(data: bytes, file: Path) -> bytes:
    """Return the topic id in `data`, the content of `file`.

    As in Kafka, only the values of the first two lines count, and later versions have them too.
    Raises CorruptFileError and UnknownVersionError.
    """
    try:
        fields = [_SEPARATOR.split(line) for line in java_lines(data)[:2]]
        (_, version_text), (_, topic_id_text) = fields
        version = parse_java_integer(version_text, bits=32)
        topic_id = uuid_from_text(topic_id_text) if version >= _VERSION else ZERO_UUID
    except ValueError as error:
        problem = "not a partition metadata file"
        raise CorruptFileError(problem, file=file, advice=_ADVICE) from error
    if version < _VERSION:
        problem = f"unrecognised version {version} of partition metadata file"
        raise UnknownVersionError(problem, file=file, advice=_ADVICE)
    if topic_id == ZERO_UUID:
        problem = "the topic id is that of no topic"
        raise CorruptFileError(problem, file=file, advice=_ADVICE)
    return topic_id


def check_partition_metadata(
    directory: Path, files: FileSystem, *, topic_id: bytes = METADATA_TOPIC_ID
) -> bool:
    """Return whether the file exists; raise CorruptFileError if it names another topic."""
    stored = read_partition_metadata(directory, files)
    if stored is not None and stored != topic_id:
        raise CorruptFileError(
            "the directory belongs to another topic",
            file=directory / PARTITION_METADATA,
            advice=_ADVICE,
        )
    return stored is not None


def write_partition_metadata(
    directory: Path, files: FileSystem, *, topic_id: bytes = METADATA_TOPIC_ID
) -> None:
    """Write the file durably."""
    replace_durably(files, directory / PARTITION_METADATA, encode_partition_metadata(topic_id))
