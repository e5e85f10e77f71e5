"""The snapshots (``*.checkpoint``) of a metadata log directory.

A snapshot is named after its end offset (exclusive) and the epoch of the last record in it. It is
written as ``<name>-<random>.checkpoint.part``, synced, made read-only and moved to its final name
in one step; so a file with the final name is complete, and never changes.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from kvorum.storage.errors import MissingSnapshotError, PoisonedError, StorageError
from kvorum.storage.files import FileSystem, OpenFile, disk_errors
from kvorum.storage.names import (
    DELETED_SUFFIX,
    PARTIAL_SUFFIX,
    SNAPSHOT_SUFFIX,
    OffsetAndEpoch,
    SnapshotName,
    parse_snapshot_name,
    snapshot_name,
)


class SnapshotStore:
    """The finished snapshots of one directory, and the way to make more.

    Lookups, `open` and `create` may be called from any thread; a snapshot may be written and frozen
    in a thread of its own while the log goes on.
    """

    def __init__(self, directory: Path, files: FileSystem) -> None:
        self.directory = directory
        self._files = files
        self._ids: set[OffsetAndEpoch] = set()
        # What `load` leaves behind has no partial files, so counting from here is unique.
        self._attempts = count(1)
        self._lock = threading.Lock()

    def load(self, *, log_start_offset: int) -> list[str]:
        """Find the snapshots, clear away what Kafka clears away too, and return those names.

        Partial and deleted files go, and snapshots that end below the log's start. Raises
        MissingSnapshotError, before anything is removed, where the log starts above zero and no
        snapshot reaches its start.
        """
        with disk_errors(self.directory, "listing"):
            parsed = [parse_snapshot_name(name) for name in self._files.list_names(self.directory)]
        found = [name for name in parsed if name is not None]
        useless = [name for name in found if _is_useless(name, log_start_offset)]
        self._ids = {name.id for name in found if name not in useless}
        if log_start_offset > 0 and not self._ids:
            raise MissingSnapshotError(
                f"the log starts at offset {log_start_offset}, "
                "and there is no snapshot at that offset or above",
                file=self.directory,
                advice="Restore the snapshot, or empty the directory to fetch all of it anew",
            )
        for name in useless:
            self._remove(self.directory / name.name)
        return [name.name for name in useless]

    def ids(self) -> list[OffsetAndEpoch]:
        """Return all snapshots, earliest first."""
        with self._lock:
            return sorted(self._ids)

    def latest(self) -> OffsetAndEpoch | None:
        """Return the snapshot with the highest epoch and offset."""
        with self._lock:
            return max(self._ids, default=None)

    def earliest(self) -> OffsetAndEpoch | None:
        """Return the snapshot with the lowest epoch and offset."""
        with self._lock:
            return min(self._ids, default=None)

    def __contains__(self, snapshot_id: OffsetAndEpoch) -> bool:
        with self._lock:
            return snapshot_id in self._ids

    def path(self, snapshot_id: OffsetAndEpoch) -> Path:
        """Return where a snapshot's file is."""
        return self.directory / snapshot_name(snapshot_id)

    def create(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotWriter | None:
        """Begin a snapshot; None where there is a finished one of that name already."""
        if snapshot_id in self:
            return None
        return RawSnapshotWriter(
            self.directory,
            snapshot_id,
            files=self._files,
            number=next(self._attempts),
            on_frozen=self._add,
        )

    def open(self, snapshot_id: OffsetAndEpoch) -> RawSnapshotReader | None:
        """Open a finished snapshot; None where there is none. The caller closes it."""
        if snapshot_id not in self:
            return None
        path = self.path(snapshot_id)
        with disk_errors(path, "opening"):
            try:
                handle = self._files.open(path, read_only=True)
                return RawSnapshotReader(snapshot_id, path, handle, handle.size())
            except FileNotFoundError:
                # Someone removed it behind our back: from now on it is not there.
                with self._lock:
                    self._ids.discard(snapshot_id)
                return None

    def size_bytes(self, snapshot_id: OffsetAndEpoch) -> int | None:
        """Return how big a snapshot is, or None where it is gone."""
        reader = self.open(snapshot_id)
        if reader is None:
            return None
        reader.close()
        return reader.size

    def mark_deleted_before(self, snapshot_id: OffsetAndEpoch) -> list[Path]:
        """Rename every earlier snapshot to ``*.deleted`` and return the new names."""
        with self._lock:
            older = sorted(known for known in self._ids if known < snapshot_id)
            self._ids.difference_update(older)
        marked: list[Path] = []
        for old in older:
            path = self.path(old)
            target = path.with_name(path.name + DELETED_SUFFIX)
            with disk_errors(path, "renaming"):
                if self._files.exists(path):
                    self._files.rename(path, target)
                    marked.append(target)
        return marked

    def _add(self, snapshot_id: OffsetAndEpoch) -> None:
        with self._lock:
            self._ids.add(snapshot_id)

    def _remove(self, path: Path) -> None:
        with disk_errors(path, "removing"):
            self._files.remove(path)


def _is_useless(name: SnapshotName, log_start_offset: int) -> bool:
    return name.is_partial or name.is_deleted or name.id.offset < log_start_offset


@dataclass(slots=True)
class RawSnapshotReader:
    """The bytes of one finished snapshot, for sending it piece by piece."""

    id: OffsetAndEpoch
    path: Path
    file: OpenFile
    size: int

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes from `position`; fewer only at the end."""
        with disk_errors(self.path, "reading"):
            return self.file.read_at(position, min(size, max(self.size - position, 0)))

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            self.file.close()


class RawSnapshotWriter:
    """One snapshot being written, or fetched from the leader piece by piece.

    `append` until all is there, then `freeze`; or `abort`. After a failed write or freeze only
    `abort` is left.
    """

    def __init__(
        self,
        directory: Path,
        snapshot_id: OffsetAndEpoch,
        *,
        files: FileSystem,
        number: int | None = None,
        on_frozen: Callable[[OffsetAndEpoch], None] = lambda _: None,
    ) -> None:
        self.id = snapshot_id
        self.size = 0
        final_name = snapshot_name(snapshot_id)
        # Kafka's temporary names carry a (random) number too: two attempts never share a file.
        own_number = secrets.randbits(63) if number is None else number
        unique = f"-{own_number}{SNAPSHOT_SUFFIX}{PARTIAL_SUFFIX}"
        self.final_path = directory / final_name
        self.path = directory / (final_name.removesuffix(SNAPSHOT_SUFFIX) + unique)
        self._directory = directory
        self._files = files
        self._on_frozen = on_frozen
        self._state = "open"
        with disk_errors(self.path, "creating"):
            files.make_directory(directory)
            self._file = files.create_exclusively(self.path)

    @property
    def is_frozen(self) -> bool:
        """Whether the snapshot is finished and has its final name."""
        return self._state == "frozen"

    def append(self, data: bytes | memoryview) -> None:
        """Write `data` behind what is there."""
        self._demand_open()
        try:
            with disk_errors(self.path, "appending"):
                self._file.write_at(self.size, data)
        except StorageError:
            self._state = "failed"
            raise
        self.size += len(data)

    def freeze(self) -> None:
        """Make the snapshot durable, unchangeable and known under its final name."""
        self._demand_open()
        self._state = "failed"
        with disk_errors(self.path, "freezing"):
            self._file.sync()
            self._file.close()
            self._files.make_read_only(self.path)
            self._files.rename(self.path, self.final_path)
            self._files.sync_directory(self._directory)
        self._state = "frozen"
        self._on_frozen(self.id)

    def abort(self) -> None:
        """Throw away what was written; does nothing to a frozen snapshot."""
        if self._state in {"frozen", "aborted"}:
            return
        self._state = "aborted"
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._files.remove(self.path)

    def read_at(self, position: int, size: int) -> bytes:
        """Return bytes written so far, to check them before freezing."""
        with disk_errors(self.path, "reading"):
            return self._file.read_at(position, min(size, max(self.size - position, 0)))

    def _demand_open(self) -> None:
        if self._state != "open":
            raise PoisonedError(f"the snapshot being written is {self._state}", file=self.path)
