"""A file of a log as a value: what it is, where it belongs."""

from __future__ import annotations

import posixpath
from enum import Enum
from typing import NamedTuple

from kvorum.storage.names import METADATA_LOG_DIRECTORY


class FileKind(Enum):
    """Kinds of files; the value is that of the `file_kind` column."""

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
