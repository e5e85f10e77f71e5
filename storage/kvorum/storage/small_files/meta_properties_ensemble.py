"""The meta.properties files of all data directories of one node, taken together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from random import Random
from types import MappingProxyType

from kvorum.storage.errors import MetaPropertiesError, StorageError
from kvorum.storage.files import FileSystem
from kvorum.storage.small_files.meta_properties import (
    META_PROPERTIES_FILE,
    MetaProperties,
    is_reserved_directory_id,
    read_meta_properties,
    write_meta_properties,
)
from kvorum.wire.uuid_text import random_uuid, uuid_to_text


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
