"""The meta.properties file of a data directory: its cluster, node and directory id.

Version 1 is written by kafka-storage; version 0 remains from clusters of the ZooKeeper days and
may lack anything. Messages of errors are Kafka's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import MappingProxyType

from kvorum.storage.errors import MetaPropertiesError, StorageError, shortened
from kvorum.storage.files import FileSystem, read_if_there, replace_durably
from kvorum.storage.small_files.java_properties import load_java_properties, store_java_properties
from kvorum.wire.java_text import java_trim, parse_java_integer
from kvorum.wire.uuid_text import random_uuid, uuid_from_text, uuid_to_text

META_PROPERTIES_FILE = "meta.properties"
_VERSION_KEY = "version"
_CLUSTER_ID_KEY = "cluster.id"
_BROKER_ID_KEY = "broker.id"
_NODE_ID_KEY = "node.id"
_DIRECTORY_ID_KEY = "directory.id"
# The order in which Java's hash table yields these keys, and so that of Kafka's files.
_KEY_ORDER = (_NODE_ID_KEY, _BROKER_ID_KEY, _DIRECTORY_ID_KEY, _VERSION_KEY, _CLUSTER_ID_KEY)
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
    node_id = _node_id(properties, node_key) if version > 0 or node_key in properties else None
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
    try:
        number = parse_java_integer(java_trim(text), bits=32)
    except ValueError as error:
        problem = f"Invalid meta.properties version string '{shortened(text)}'"
        raise MetaPropertiesError(problem) from error
    if number not in {0, 1}:
        raise MetaPropertiesError(f"Unknown meta.properties version number {number}")
    return number


def _node_id(properties: dict[str, str], key: str) -> int:
    if key not in properties:
        raise MetaPropertiesError(f"Failed to find {key}")
    try:
        return parse_java_integer(properties[key], bits=32)
    except ValueError as error:
        raise MetaPropertiesError(f"Unable to read {key} as a base-10 number.") from error


def _directory_id(properties: dict[str, str]) -> bytes | None:
    text = properties.get(_DIRECTORY_ID_KEY)
    if text is None:
        return None
    try:
        return uuid_from_text(text)
    except ValueError as error:
        problem = f"Unable to read {_DIRECTORY_ID_KEY} as a Uuid: {error}"
        raise MetaPropertiesError(problem) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaPropertiesEnsemble:
    """The meta.properties of a node's data directories.

    `properties` has the readable files by directory, in order of name. `failed_directories` has
    the directories whose file could not be read, each with the reason. A directory without a
    file is in neither.
    """

    metadata_directory: Path
    properties: Mapping[Path, MetaProperties]
    failed_directories: Mapping[Path, StorageError] = field(
        default_factory=lambda: MappingProxyType({})
    )

    @property
    def cluster_id(self) -> str | None:
        """The first cluster id that a file names."""
        named = (entry.cluster_id for entry in self.properties.values())
        return next((cluster_id for cluster_id in named if cluster_id is not None), None)

    @property
    def node_id(self) -> int | None:
        """The first node id that a file names."""
        named = (entry.node_id for entry in self.properties.values())
        return next((node_id for node_id in named if node_id is not None), None)

    def verify(
        self,
        *,
        expected_cluster_id: str | None = None,
        expected_node_id: int | None = None,
        at_least_one: bool = False,
    ) -> None:
        """Check that all files agree with each other and with what is expected.

        `at_least_one` demands a readable file. Raises MetaPropertiesError with Kafka's messages.
        """
        if at_least_one and not self.properties:
            raise MetaPropertiesError("No readable meta.properties files found.")
        owners: dict[bytes, Path] = {}
        for directory, entry in self.properties.items():
            file = directory / META_PROPERTIES_FILE
            expected_cluster_id = _agreed_cluster_id(entry, expected_cluster_id, file)
            expected_node_id = _agreed_node_id(entry, expected_node_id, file)
            _check_directory_id(entry.directory_id, directory, owners)
        if self.metadata_directory in self.failed_directories:
            raise MetaPropertiesError(
                "Encountered I/O error in metadata log directory "
                f"{self.metadata_directory}. Cannot continue."
            ) from self.failed_directories[self.metadata_directory]

    def with_directory_ids(self, random: Random) -> MetaPropertiesEnsemble:
        """Return the same with a fresh directory id for every file that lacks one."""
        taken = {entry.directory_id for entry in self.properties.values()}
        completed: dict[Path, MetaProperties] = {}
        for directory, entry in self.properties.items():
            completed[directory] = entry
            if entry.directory_id is None:
                drawn = draw_directory_id(random, taken)
                taken.add(drawn)
                completed[directory] = replace(entry, directory_id=drawn)
        return replace(self, properties=MappingProxyType(completed))

    def write_changes(
        self, before: MetaPropertiesEnsemble, files: FileSystem, *, now: datetime
    ) -> list[Path]:
        """Write the files that are new or differ from `before`; return their directories."""
        changed = [
            directory
            for directory, entry in self.properties.items()
            if before.properties.get(directory) != entry
        ]
        for directory in changed:
            write_meta_properties(directory, self.properties[directory], files, now=now)
        return changed


def load_meta_properties(
    directories: Iterable[Path], files: FileSystem, *, metadata_directory: Path
) -> MetaPropertiesEnsemble:
    """Read the meta.properties of all `directories` and of the metadata log's."""
    properties: dict[Path, MetaProperties] = {}
    failed: dict[Path, StorageError] = {}
    for directory in sorted({*directories, metadata_directory}):
        try:
            entry = read_meta_properties(directory, files)
        except StorageError as error:
            failed[directory] = error
            continue
        if entry is not None:
            properties[directory] = entry
    return MetaPropertiesEnsemble(
        metadata_directory=metadata_directory,
        properties=MappingProxyType(properties),
        failed_directories=MappingProxyType(failed),
    )


def draw_directory_id(random: Random, taken: Iterable[bytes | None] = ()) -> bytes:
    """Draw an id that is not reserved and not taken, and whose text begins with no dash."""
    others = set(taken)
    while True:
        drawn = random_uuid(random)
        if drawn not in others and not is_reserved_directory_id(drawn):
            return drawn


def _agreed_cluster_id(entry: MetaProperties, expected: str | None, file: Path) -> str | None:
    if entry.cluster_id is None:
        return expected
    if expected is not None and entry.cluster_id != expected:
        raise MetaPropertiesError(
            f"Invalid cluster.id in: {file}. Expected {expected}, but read {entry.cluster_id}"
        )
    return entry.cluster_id


def _agreed_node_id(entry: MetaProperties, expected: int | None, file: Path) -> int | None:
    if entry.node_id is None:
        return expected
    if expected is not None and entry.node_id != expected:
        raise MetaPropertiesError(
            f"Stored node id {entry.node_id} doesn't match previous node id {expected} in {file}. "
            "If you moved your data, make sure your configured node id matches. If you intend to "
            "create a new node, you should remove all data in your data directories."
        )
    return entry.node_id


def _check_directory_id(
    directory_id: bytes | None, directory: Path, owners: dict[bytes, Path]
) -> None:
    """Check one directory's id, and add it to `owners`."""
    if directory_id is None:
        return
    if is_reserved_directory_id(directory_id):
        raise MetaPropertiesError(
            f"Invalid reserved directory ID {uuid_to_text(directory_id)} found in {directory}"
        )
    if directory_id in owners:
        raise MetaPropertiesError(
            f"Duplicate directory ID Optional[{uuid_to_text(directory_id)}] found. "
            f"It was the ID of {owners[directory_id]}, but also of {directory}"
        )
    owners[directory_id] = directory
