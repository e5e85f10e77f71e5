"""The data directories of a node: locked, checked against the configuration, with their ids."""

import logging
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from kvorum.metadata.bootstrap import (
    BootstrapMetadata,
    bootstrap_from_features,
    bootstrap_from_records,
)
from kvorum.metadata.errors import MetadataError
from kvorum.metadata.metadata_version import LATEST_PRODUCTION_METADATA_VERSION
from kvorum.metadata.record_frame import decode_record
from kvorum.node.config import NodeConfig
from kvorum.node.errors import NodeStartError
from kvorum.storage.directory.log_dir_failure_channel import LogDirFailureChannel
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.log_directory_files import LogDirectoryFiles
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.errors import DiskError, StorageError, TooManyOpenFilesError
from kvorum.storage.files import FileSystem
from kvorum.storage.metadata_log.bootstrap_checkpoint import (
    BOOTSTRAP_CHECKPOINT,
    read_bootstrap_records,
)
from kvorum.storage.names import METADATA_LOG_DIRECTORY, snapshot_name
from kvorum.storage.small_files.clean_shutdown import CleanShutdown
from kvorum.storage.small_files.directory_lock import lock_directory
from kvorum.storage.small_files.meta_properties import (
    META_PROPERTIES_FILE,
    MetaPropertiesEnsemble,
    load_meta_properties,
)
from kvorum.wire.offset_and_epoch import BOOTSTRAP_SNAPSHOT_ID

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDirectories:
    """The checked directories of a node, with the ids found in them."""

    cluster_id: str
    metadata_directory: Path
    metadata_directory_id: bytes
    log_directories: tuple[Path, ...]
    log_directory_ids: tuple[bytes, ...]
    bootstrap: BootstrapMetadata

    @property
    def partition_directory(self) -> Path:
        """The directory of the metadata log's partition."""
        return self.metadata_directory / METADATA_LOG_DIRECTORY


def open_directories(
    config: NodeConfig, files: FileSystem, *, random: Random, locks: ExitStack
) -> NodeDirectories:
    """Lock and check every directory of a node; the locks are released with `locks`.

    Raises NodeStartError for a directory that is not formatted, belongs to another node or
    cluster, or is in use; StorageError where it cannot be read.
    """
    metadata_directory = Path(config.metadata_log.directory)
    log_directories = tuple(dict.fromkeys(Path(each) for each in config.log_directories))
    everything = tuple(dict.fromkeys((metadata_directory, *log_directories)))
    _require_formatted(everything, files)
    for directory in everything:
        locks.callback(lock_directory(directory, files).release)
    found = load_meta_properties(log_directories, files, metadata_directory=metadata_directory)
    _verify(found, config)
    _refuse_stray_logs(log_directories, metadata_directory, files)
    named = found.with_directory_ids(random)
    named.write_changes(found, files, now=datetime.now(UTC))
    assert named.cluster_id is not None
    return NodeDirectories(
        cluster_id=named.cluster_id,
        metadata_directory=metadata_directory,
        metadata_directory_id=_directory_id(named, metadata_directory),
        log_directories=log_directories,
        log_directory_ids=tuple(_directory_id(named, each) for each in log_directories),
        bootstrap=_read_bootstrap(metadata_directory, files),
    )


def common_epoch(shutdowns: Iterable[CleanShutdown]) -> int:
    """Return the broker epoch of the last clean shutdown if all directories have it, else -1."""
    epochs = {shutdown.broker_epoch for shutdown in shutdowns}
    epoch = epochs.pop() if len(epochs) == 1 else None
    return -1 if epoch is None else epoch


def open_log_directories(
    directories: NodeDirectories,
    shutdowns: Iterable[CleanShutdown],
    files: FileSystem,
    channel: LogDirFailureChannel,
    open_files: OpenFiles,
) -> list[LogDirectory]:
    """Return the log directories that can be read; `channel` takes the failures, also later ones.

    The logs in all of them share `open_files`. Raises StorageError where a checkpoint is damaged,
    or no directory can be read.
    """
    opened: list[LogDirectory] = []
    failure: DiskError | None = None
    for path, directory_id, shutdown in zip(
        directories.log_directories, directories.log_directory_ids, shutdowns, strict=True
    ):
        watched = LogDirectoryFiles(files, path, channel, open_files)
        try:
            opened.append(LogDirectory(path, directory_id, watched, was_clean=shutdown.was_clean))
        except TooManyOpenFilesError:
            raise
        except DiskError as error:
            failure = error
    if failure is not None and not opened:
        raise failure
    return opened


def _require_formatted(directories: Iterable[Path], files: FileSystem) -> None:
    for directory in directories:
        try:
            is_formatted = files.exists(directory / META_PROPERTIES_FILE)
        except OSError as error:
            raise NodeStartError(
                f"Cannot read the directory {directory}: {error.strerror}"
            ) from error
        if not is_formatted:
            raise NodeStartError(
                f"No `{META_PROPERTIES_FILE}` found in {directory}: the directory is not "
                "formatted. Run `kvorum storage format` with this configuration first"
            )


def _verify(found: MetaPropertiesEnsemble, config: NodeConfig) -> None:
    for directory, error in found.failed_directories.items():
        if error.file is None:
            raise NodeStartError(f"{directory / META_PROPERTIES_FILE}: {error}") from error
        raise error
    found.verify(expected_node_id=config.node_id, at_least_one=True)
    for directory, properties in found.properties.items():
        if properties.node_id is None:
            raise NodeStartError(f"Error: node ID not found in {directory}")
        if properties.cluster_id is None:
            raise NodeStartError(f"Error: cluster ID not found in {directory}")


def _refuse_stray_logs(
    directories: Iterable[Path], metadata_directory: Path, files: FileSystem
) -> None:
    for directory in directories:
        stray = directory / METADATA_LOG_DIRECTORY
        if directory != metadata_directory and files.exists(stray):
            raise NodeStartError(
                f"Found unexpected metadata location in data directory `{stray}` "
                f"(the configured metadata directory is {metadata_directory})."
            )


def _directory_id(found: MetaPropertiesEnsemble, directory: Path) -> bytes:
    directory_id = found.properties[directory].directory_id
    assert directory_id is not None
    return directory_id


def _read_bootstrap(directory: Path, files: FileSystem) -> BootstrapMetadata:
    """Return the bootstrap records of the snapshot 0-0, else of a file as before Kafka 4.4."""
    snapshot = directory / METADATA_LOG_DIRECTORY / snapshot_name(BOOTSTRAP_SNAPSHOT_ID)
    for path in (snapshot, directory / BOOTSTRAP_CHECKPOINT):
        values = read_bootstrap_records(path, files)
        if values:
            try:
                return bootstrap_from_records(
                    map(decode_record, values), source=f"the binary bootstrap metadata file: {path}"
                )
            except MetadataError as error:
                raise StorageError(str(error), file=path) from error
    return bootstrap_from_features(
        LATEST_PRODUCTION_METADATA_VERSION, {}, source="the default bootstrap"
    )
