"""The files that a path means, what each of them is, and the node whose disk it was on.

A path is a file, a directory or a glob pattern. A directory is searched at every depth, so it may
be a partition's directory, a node's log directory, or a tree of many clusters' and nodes'
directories. Files are recognised by their names, nodes by the meta.properties file next to a file
or above it.
"""

import logging
import posixpath
from collections.abc import Collection, Container, Iterable, Mapping
from contextlib import closing, suppress
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple

from kvorum.log_files.errors import LogFilesError
from kvorum.log_files.file_systems import Files, files_at
from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.storage.directory.partition_directory import suffix_of
from kvorum.storage.errors import MetaPropertiesError, PropertiesFormatError
from kvorum.storage.log.interrupted_swap import interrupted_swap
from kvorum.storage.log.segment_scan import BadBatchError, scan_batches
from kvorum.storage.metadata_log.bootstrap_checkpoint import BOOTSTRAP_CHECKPOINT
from kvorum.storage.names import (
    LOG_SUFFIX,
    METADATA_LOG_DIRECTORY,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    parse_offset_name,
    parse_partition_directory,
    parse_snapshot_name,
)
from kvorum.storage.small_files.meta_properties import META_PROPERTIES_FILE, decode_meta_properties

GLOB_CHARACTERS: Final = frozenset("*?[")
META_PROPERTIES_BYTES_MAX: Final = 64 * 1024
_LOG: Final = logging.getLogger(__name__)


class FileKind(Enum):
    """Kinds of files; the values are what tables and messages show."""

    SEGMENT = "segment"
    SNAPSHOT = "snapshot"
    BOOTSTRAP = "bootstrap"


class LogFile(NamedTuple):
    """A file that holds record batches.

    `offset` is a segment's first offset, or the offset up to which a snapshot replaces the log;
    None for a segment whose name does not contain it. `epoch` belongs to a snapshot, 0 otherwise.
    `size` is in bytes, at the time of the listing. `cluster_id` and `node_id` are those of the
    node whose disk the file was on, `topic` and `partition` come from the directory's name; None
    where they are not known.
    """

    path: str
    kind: FileKind
    offset: int | None
    epoch: int
    size: int
    cluster_id: str | None = None
    node_id: int | None = None
    topic: str | None = None
    partition: int | None = None

    @property
    def directory(self) -> str:
        """The directory that holds the file."""
        return posixpath.dirname(self.path)

    @property
    def log_directory(self) -> str:
        """The directory that segments, snapshots and bootstrap records of one log lie below."""
        if posixpath.basename(self.directory) == METADATA_LOG_DIRECTORY:
            return posixpath.dirname(self.directory)
        return self.directory

    @property
    def order(self) -> tuple[str, bool, int, str]:
        """The sort key: one log after the other, bootstrap records first, then by offset."""
        is_bootstrap = self.kind is FileKind.BOOTSTRAP
        return self.log_directory, not is_bootstrap, self.offset or 0, self.path


class Identity(NamedTuple):
    """A cluster's id and a node's; None where it is not known."""

    cluster_id: str | None = None
    node_id: int | None = None


NO_IDENTITY: Final = Identity()


class Identities:
    """The identities of the files below one directory.

    The nearest meta.properties counts, from the file's directory up to one level above `root`.
    `listed` has the names of all files below `root`, None where they are not known. What
    meta.properties does not contain is taken from `default`.
    """

    def __init__(
        self, files: Files, root: str, *, listed: Container[str] | None, default: Identity
    ) -> None:
        self._files = files
        self._highest = posixpath.dirname(root)
        self._listed = listed
        self._root = root
        self._default = default
        self._known: dict[str, Identity | None] = {}

    def identified(self, file: LogFile) -> LogFile:
        """Return the file with its node's identity."""
        directory: str = file.directory
        found = self._read(directory)
        while found is None and directory not in {self._highest, ""}:
            directory = posixpath.dirname(directory)
            found = self._read(directory)
        cluster_id, node_id = found or NO_IDENTITY
        return file._replace(
            cluster_id=self._default.cluster_id if cluster_id is None else cluster_id,
            node_id=self._default.node_id if node_id is None else node_id,
        )

    def _read(self, directory: str) -> Identity | None:
        if directory not in self._known:
            self._known[directory] = self._identity_in(directory)
        return self._known[directory]

    def _identity_in(self, directory: str) -> Identity | None:
        path = posixpath.join(directory, META_PROPERTIES_FILE)
        is_below = directory == self._root or directory.startswith(self._root + "/")
        if is_below and self._listed is not None and path not in self._listed:
            return None
        if directory.endswith(":"):
            # The end of the way up from a bucket: a scheme without a path.
            return None
        try:
            file = self._files.open(path)
        except OSError:
            # Above the root there need not be a readable directory, nor a bucket.
            return None
        try:
            with closing(file):
                properties = decode_meta_properties(file.read_at(0, META_PROPERTIES_BYTES_MAX))
        except (OSError, MetaPropertiesError, PropertiesFormatError) as error:
            _LOG.warning("%s: not used: %s", path, error)
            return None
        return Identity(properties.cluster_id, properties.node_id)


class Search(NamedTuple):
    """The places that are searched besides the paths.

    `topics` are those whose partitions are taken from directories; None takes every topic's. A
    file or a partition's directory that is named itself is always taken; directories of replicas
    that leave or arrive (-delete, -stray, -future) only so. `default_identity` is for
    files without a meta.properties file, `file_system_options` are for fsspec. Where it
    `may_be_empty`, a directory without files of a log and a pattern without a match are no errors.
    """

    topics: Collection[str] | None = None
    default_identity: Identity = NO_IDENTITY
    file_system_options: Mapping[str, Any] = {}
    may_be_empty: bool = False


METADATA_SEARCH: Final = Search(frozenset({CLUSTER_METADATA_TOPIC}))
"""A search that takes the files of metadata logs from directories."""


class FoundFiles(NamedTuple):
    """The files, in the order of `LogFile.order`, and the log directories that are there whole.

    A log directory is whole where a directory was named that contains all of it: its first
    segment must then begin where a snapshot ends, or at offset 0.
    """

    files: tuple[LogFile, ...]
    whole_directories: frozenset[str]


def find_files(paths: Iterable[str], search: Search = Search()) -> FoundFiles:  # noqa: B008 - frozen
    """Return the files that hold records at `paths`, each of them once.

    Raises `LogFilesError` for a path that does not exist, cannot be listed, or holds no such
    files.
    """
    found: dict[str, LogFile] = {}
    whole: set[str] = set()
    for given in paths:
        files = files_at(given, search.file_system_options)
        try:
            for place in _expanded(files, files.full_path(given), search):
                _find_at(place, files, search, found=found, whole=whole)
        except OSError as error:
            raise LogFilesError(f"{given}: cannot be listed: {error.strerror or error}") from error
    return FoundFiles(tuple(sorted(found.values(), key=lambda file: file.order)), frozenset(whole))


def classify(path: str, size: int) -> LogFile | None:
    """Return the file by its name; None for a file that does not contain records."""
    directory, name = posixpath.split(path)
    topic, partition = parse_partition_directory(posixpath.basename(directory)) or (None, None)
    if name == BOOTSTRAP_CHECKPOINT:
        return LogFile(path, FileKind.BOOTSTRAP, 0, 0, size)
    if (segment := parse_offset_name(name)) and segment[1] == LOG_SUFFIX:
        return LogFile(
            path, FileKind.SEGMENT, segment[0], 0, size, topic=topic, partition=partition
        )
    snapshot = parse_snapshot_name(name)
    if snapshot and not snapshot.is_partial and not snapshot.is_deleted:
        offset, epoch = snapshot.id.offset, snapshot.id.epoch
        return LogFile(
            path, FileKind.SNAPSHOT, offset, epoch, size, topic=topic, partition=partition
        )
    return None


def _expanded(files: Files, path: str, search: Search) -> list[str]:
    if not GLOB_CHARACTERS.intersection(path):
        return [path]
    matches = files.expand(path)
    if not matches and not search.may_be_empty:
        raise LogFilesError(f"{path}: no file or directory matches")
    return matches


def _find_at(
    path: str, files: Files, search: Search, *, found: dict[str, LogFile], whole: set[str]
) -> None:
    """Add the files at one path, which is a file or a directory."""
    if not files.is_directory(path):
        single = _single_file(path, files)
        directory = posixpath.dirname(path)
        identities = Identities(files, directory, listed=None, default=search.default_identity)
        found.setdefault(path, identities.identified(single))
        return
    sizes = files.list_below(path)
    identities = Identities(files, path, listed=sizes, default=search.default_identity)
    known = recognised(files, sizes)
    wanted = [file for file in known if _is_wanted(file, path, search.topics)]
    if not wanted and not search.may_be_empty:
        raise LogFilesError(f"{path}: {_nothing(known, search.topics)}")
    if len(wanted) < len(known):
        left_out = len(known) - len(wanted)
        _LOG.info("%s: %d files of other topics or former replicas are left out", path, left_out)
    for file in wanted:
        found.setdefault(file.path, identities.identified(file))
        whole.add(file.log_directory)


def recognised(files: Files, sizes: Mapping[str, int]) -> list[LogFile]:
    """Return the files that hold records, of paths with their sizes in bytes. Raises OSError."""
    return [
        file._replace(path=name)
        for name, lasting in lasting_paths(files, sizes).items()
        if (file := classify(lasting, sizes[name])) is not None
    ]


def lasting_paths(files: Files, paths: Iterable[str]) -> dict[str, str]:
    """Return the files that count, each with the path that it has after the next start of its node.

    A crash during compaction leaves ``*.swap`` files, which are segments already. Raises OSError.
    """
    by_directory: dict[str, list[str]] = {}
    for path in paths:
        directory, name = posixpath.split(path)
        by_directory.setdefault(directory, []).append(name)
    found: dict[str, str] = {}
    for directory, names in by_directory.items():
        end_offset = partial(swap_end_offset, files, directory)
        for name, lasting in interrupted_swap(names, end_offset).lasting_names(names).items():
            found[posixpath.join(directory, name)] = posixpath.join(directory, lasting)
    return found


def swap_end_offset(files: Files, directory: str, name: str) -> int:
    """Return where the batches of a ``*.log.swap`` file end, as far as they are sound.

    It is 0 where a running node has given the file its name meanwhile. Raises OSError.
    """
    end_offset = 0
    path = posixpath.join(directory, name)
    with suppress(FileNotFoundError, BadBatchError), closing(files.open(path)) as file:
        for _, header in scan_batches(file, end=file.size, verify=False):
            end_offset = header.next_offset
    return end_offset


def _is_wanted(file: LogFile, given: str, topics: Collection[str] | None) -> bool:
    if file.directory == given:
        return True
    if suffix_of(posixpath.basename(file.directory)) is not None:
        # A replica that leaves (-delete, -stray) or arrives (-future) is not a part of its topic.
        return False
    return topics is None or file.topic is None or file.topic in topics


def _nothing(known: list[LogFile], topics: Collection[str] | None) -> str:
    if not known or topics is None:
        return "holds neither segments (.log) nor snapshots (.checkpoint)"
    return f"holds no segments or snapshots of {', '.join(sorted(topics))}"


def _single_file(path: str, files: Files) -> LogFile:
    """Return a file by its name, or a renamed one by its suffix."""
    try:
        size = files.size_of(path)
    except FileNotFoundError:
        raise LogFilesError(f"{path}: no such file or directory") from None
    known = classify(path.removesuffix(SWAP_SUFFIX), size)
    if known is not None:
        return known._replace(path=path)
    if path.endswith(SNAPSHOT_SUFFIX):
        return LogFile(path, FileKind.SNAPSHOT, None, 0, size)
    if path.endswith(LOG_SUFFIX):
        return LogFile(path, FileKind.SEGMENT, None, 0, size)
    raise LogFilesError(f"{path}: neither a segment (.log) nor a snapshot (.checkpoint)")
