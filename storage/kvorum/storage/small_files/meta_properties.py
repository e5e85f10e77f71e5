"""The meta.properties file of a data directory: its cluster, node and directory id.

Version 1 is written by kafka-storage; version 0 remains from clusters of the ZooKeeper days and
may lack anything. Messages of errors are Kafka's.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kvorum.storage.errors import MetaPropertiesError
from kvorum.storage.files import FileSystem, read_if_there, replace_durably
from kvorum.storage.small_files.java_properties import load_java_properties, store_java_properties
from kvorum.wire.uuid_text import uuid_from_text, uuid_to_text

META_PROPERTIES_FILE = "meta.properties"
_VERSION_KEY = "version"
_CLUSTER_ID_KEY = "cluster.id"
_BROKER_ID_KEY = "broker.id"
_NODE_ID_KEY = "node.id"
_DIRECTORY_ID_KEY = "directory.id"
# The order in which Java's hash table yields these keys, and so that of Kafka's files.
_KEY_ORDER = (_NODE_ID_KEY, _BROKER_ID_KEY, _DIRECTORY_ID_KEY, _VERSION_KEY, _CLUSTER_ID_KEY)
_JAVA_INT = re.compile(r"[+-]?\d+", re.ASCII)
_INT32_LIMIT = 2**31
_RESERVED_DIRECTORY_IDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    """The content of one meta.properties file; in version 1 cluster and node are always there."""

    version: int = 1
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: bytes | None = None

    def __str__(self) -> str:
        parts = [f"version={self.version}"]
        if self.cluster_id is not None:
            parts.append(f"clusterId={self.cluster_id}")
        if self.node_id is not None:
            parts.append(f"nodeId={self.node_id}")
        if self.directory_id is not None:
            parts.append(f"directoryId={uuid_to_text(self.directory_id)}")
        return f"MetaProperties({', '.join(parts)})"


def decode_meta_properties(data: bytes) -> MetaProperties:
    """Return the properties that a file's bytes contain.

    Raises MetaPropertiesError or PropertiesFormatError for files that Kafka refuses to load.
    """
    properties = load_java_properties(data)
    version = _version(properties.get(_VERSION_KEY, "0"))
    node_key = _BROKER_ID_KEY if version == 0 else _NODE_ID_KEY
    node_id = None
    if version > 0 or node_key in properties:
        node_id = _node_id(properties, node_key)
    cluster_id = properties.get(_CLUSTER_ID_KEY)
    if version > 0 and cluster_id is None:
        raise MetaPropertiesError("cluster.id was not found.")
    return MetaProperties(
        version=version,
        cluster_id=cluster_id,
        node_id=node_id,
        directory_id=_directory_id(properties),
    )


def encode_meta_properties(properties: MetaProperties, *, now: datetime) -> bytes:
    """Return the file's bytes as Kafka writes them, with the date `now` in a comment."""
    if properties.version > 0 and (properties.cluster_id is None or properties.node_id is None):
        missing = _CLUSTER_ID_KEY if properties.cluster_id is None else _NODE_ID_KEY
        raise MetaPropertiesError(f"{missing} was not found.")
    values = {_VERSION_KEY: str(properties.version)}
    if properties.cluster_id is not None:
        values[_CLUSTER_ID_KEY] = properties.cluster_id
    if properties.node_id is not None:
        node_key = _BROKER_ID_KEY if properties.version == 0 else _NODE_ID_KEY
        values[node_key] = str(properties.node_id)
    if properties.directory_id is not None:
        values[_DIRECTORY_ID_KEY] = uuid_to_text(properties.directory_id)
    pairs = [(key, values[key]) for key in _KEY_ORDER if key in values]
    date = now.astimezone(UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    return store_java_properties(pairs, comments=["", date]).encode("ascii")


def read_meta_properties(directory: Path, files: FileSystem) -> MetaProperties | None:
    """Return the properties of a directory's file, or None without a file."""
    data = read_if_there(files, directory / META_PROPERTIES_FILE)
    return None if data is None else decode_meta_properties(data)


def write_meta_properties(
    directory: Path, properties: MetaProperties, files: FileSystem, *, now: datetime
) -> None:
    """Replace a directory's file durably."""
    path = directory / META_PROPERTIES_FILE
    replace_durably(files, path, encode_meta_properties(properties, now=now))


def is_reserved_directory_id(directory_id: bytes) -> bool:
    """Return whether an id is reserved (the first hundred are).

    The lower half is compared as Java does, signed: with the upper half zero, a negative lower
    half counts as reserved too.
    """
    lower_half = int.from_bytes(directory_id[8:], signed=True)
    return directory_id[:8] == bytes(8) and lower_half < _RESERVED_DIRECTORY_IDS


def _version(text: str) -> int:
    number = _java_int(text.strip())
    if number is None:
        raise MetaPropertiesError(f"Invalid meta.properties version string '{text}'")
    if number not in {0, 1}:
        raise MetaPropertiesError(f"Unknown meta.properties version number {number}")
    return number


def _node_id(properties: dict[str, str], key: str) -> int:
    if key not in properties:
        raise MetaPropertiesError(f"Failed to find {key}")
    number = _java_int(properties[key])
    if number is None:
        raise MetaPropertiesError(f"Unable to read {key} as a base-10 number.")
    return number


def _directory_id(properties: dict[str, str]) -> bytes | None:
    text = properties.get(_DIRECTORY_ID_KEY)
    if text is None:
        return None
    try:
        return uuid_from_text(text)
    except ValueError as error:
        problem = f"Unable to read {_DIRECTORY_ID_KEY} as a Uuid: {error}"
        raise MetaPropertiesError(problem) from error


def _java_int(text: str) -> int | None:
    """Return the result of Java's Integer.parseInt for `text`, or None where that fails."""
    if not _JAVA_INT.fullmatch(text):
        return None
    number = int(text)
    return number if -_INT32_LIMIT <= number < _INT32_LIMIT else None
