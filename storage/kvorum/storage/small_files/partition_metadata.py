"""The partition.metadata file: the id of the topic that a log directory belongs to."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path

from kvorum.storage.errors import CorruptFileError, UnknownVersionError
from kvorum.storage.files import FileSystem, read_if_there, replace_durably

PARTITION_METADATA = "partition.metadata"
METADATA_TOPIC_ID = bytes(15) + b"\x01"
_VERSION = 0
_FORMAT = re.compile(r"version: (-?\d+)\ntopic_id: ([A-Za-z0-9_-]{22})\n?")
_ADVICE = "Check that the directory is that of this partition"


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """Return the file's content; no newline at its end, as in Kafka."""
    text = urlsafe_b64encode(topic_id).rstrip(b"=").decode()
    return f"version: {_VERSION}\ntopic_id: {text}".encode()


def read_partition_metadata(directory: Path, files: FileSystem) -> bytes | None:
    """Return the topic id that a directory's file names, or None without a file."""
    path = directory / PARTITION_METADATA
    data = read_if_there(files, path)
    if data is None:
        return None
    found = _FORMAT.fullmatch(data.decode("utf-8", "replace"))
    if found is None:
        raise CorruptFileError("not a partition metadata file", file=path, advice=_ADVICE)
    if int(found.group(1)) != _VERSION:
        problem = f"unrecognised version {found.group(1)} of partition metadata file"
        raise UnknownVersionError(problem, file=path, advice=_ADVICE)
    return urlsafe_b64decode(found.group(2) + "==")


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
