"""The files that a path means: a file, a directory, a glob pattern, or several of them.

A directory is searched at every depth, so it may be a partition's directory, a node's log
directory, or a tree of many clusters' and nodes' directories. Files are recognised by their names.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.spark.errors import LogFilesError
from kvorum.spark.files.file_systems import Files, files_at
from kvorum.spark.files.log_file import FileKind, LogFile
from kvorum.spark.files.node_identity import NO_IDENTITY, Identities, Identity
from kvorum.storage.metadata_log.bootstrap_checkpoint import BOOTSTRAP_CHECKPOINT
from kvorum.storage.names import (
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    parse_offset_name,
    parse_partition_directory,
    parse_snapshot_name,
)

GLOB_CHARACTERS: Final = frozenset("*?[")
_LOG: Final = logging.getLogger(__name__)


class Search(NamedTuple):
    """The places that are searched besides the paths.

    `topics` are those whose partitions are taken from directories; None takes every topic's. A
    file or a partition's directory that is named itself is always taken. `default_identity` is for
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
    name = posixpath.basename(path)
    topic, partition = parse_partition_directory(posixpath.basename(posixpath.dirname(path))) or (
        None,
        None,
    )
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
    known = [file for name, size in sizes.items() if (file := classify(name, size)) is not None]
    wanted = [file for file in known if _is_wanted(file, path, search.topics)]
    if not wanted and not search.may_be_empty:
        raise LogFilesError(f"{path}: {_nothing(known, search.topics)}")
    if len(wanted) < len(known):
        _LOG.info("%s: %d files of other topics are left out", path, len(known) - len(wanted))
    for file in wanted:
        found.setdefault(file.path, identities.identified(file))
        whole.add(file.log_directory)


def _is_wanted(file: LogFile, given: str, topics: Collection[str] | None) -> bool:
    return topics is None or file.topic is None or file.topic in topics or file.directory == given


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
    known = classify(path, size)
    if known is not None:
        return known
    if path.endswith(SNAPSHOT_SUFFIX):
        return LogFile(path, FileKind.SNAPSHOT, None, 0, size)
    if path.endswith(LOG_SUFFIX):
        return LogFile(path, FileKind.SEGMENT, None, 0, size)
    raise LogFilesError(f"{path}: neither a segment (.log) nor a snapshot (.checkpoint)")
