"""The objects in a file, or in all files of a directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kvorum.inspection.decoding.errors import UnknownFileError
from kvorum.inspection.decoding.log_entries import log_objects
from kvorum.inspection.decoding.small_files import reader_of
from kvorum.inspection.log_check.listing import directories_below
from kvorum.inspection.passing_files import lasting_name
from kvorum.inspection.telling import Tell, no_report
from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.storage.directory.partition_directory import current_name
from kvorum.storage.errors import StorageError
from kvorum.storage.names import LOG_SUFFIX, SNAPSHOT_SUFFIX, parse_partition_directory
from kvorum.wire.json_form import Json


def files_below(path: Path) -> list[Path]:
    """Return a file itself, or the files of all directories below one that can be decoded."""
    if not path.is_dir():
        return [path]
    return [
        file
        for directory in directories_below(path)
        for file in sorted(directory.iterdir())
        if file.is_file() and _is_known(file.name)
    ]


def file_objects(
    path: Path, topic: str | None = None, *, tell: Tell = no_report
) -> Iterator[dict[str, Json]]:
    """Yield what is in a file, an object for each part; what is damaged is an object too.

    `topic` says which records a segment has; without it the directory's name does. Raises OSError
    and `UnknownFileError`.
    """
    name = lasting_name(path.name)
    if name.endswith((LOG_SUFFIX, SNAPSHOT_SUFFIX)):
        is_snapshot = name.endswith(SNAPSHOT_SUFFIX)
        known = CLUSTER_METADATA_TOPIC if is_snapshot else _topic_of(path.absolute().parent)
        yield from log_objects(path, name, topic or known, tell)
        return
    reader = reader_of(name)
    if reader is None:
        raise UnknownFileError(f"{path}: no file of a log directory has such a name")
    try:
        yield from reader(path)
    except StorageError as error:
        yield {"type": "damage", "position": 0, "problem": error.problem}
    except ValueError as error:
        yield {"type": "damage", "position": 0, "problem": str(error)}


def _is_known(name: str) -> bool:
    name = lasting_name(name)
    return name.endswith((LOG_SUFFIX, SNAPSHOT_SUFFIX)) or reader_of(name) is not None


def _topic_of(directory: Path) -> str | None:
    parsed = parse_partition_directory(current_name(directory.name))
    return None if parsed is None else parsed[0]
