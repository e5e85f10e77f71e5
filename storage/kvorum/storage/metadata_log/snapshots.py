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
from kvorum.storage.files import FileSystem, OpenFile, disk_errors, list_if_there
from kvorum.storage.names import (
    DELETED_SUFFIX,
    PARTIAL_SUFFIX,
    SNAPSHOT_SUFFIX,
    SnapshotName,
    parse_snapshot_name,
    snapshot_name,
)
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


class SnapshotStore:
    """The finished snapshots of one directory.

    Lookups, `open` and `create` may be called from any thread; a snapshot may be written and frozen
    in a thread of its own while the log goes on.
    """

    def __init__(self, directory: Path, files: FileSystem) -> None:
        self.directory = directory
        self._files = files
        self._ids: set[OffsetAndEpoch] = set()
        # `load` leaves no partial files, so numbers that count from here are unique.
        self._attempts = count(1)
        self._lock = threading.Lock()

    def load(self, *, log_start_offset: int) -> list[str]:
        """Find the snapshots; return the names of obsolete files, and change nothing.

        Obsolete are partial and deleted files, and snapshots that end below the log's start: Kafka
        removes them at a start. Raises MissingSnapshotError where the log starts above zero
        and no snapshot reaches its start.
        """
        parsed = map(parse_snapshot_name, list_if_there(self._files, self.directory))
        found = [name for name in parsed if name is not None]
        useless = [
            name
            for name in found
            if name.is_partial or name.is_deleted or name.id.offset < log_start_offset
        ]
        self._ids = {name.id for name in found if name not in useless}
        if log_start_offset > 0 and not self._ids:
            raise MissingSnapshotError(
                f"the log starts at offset {log_start_offset}, "
                "and there is no snapshot at that offset or above",
                file=self.directory,
                advice=_advice_for_missing(useless, log_start_offset),
            )
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
        """Return the path of a snapshot's file."""
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
        """Open a finished snapshot; None without one. The caller closes it."""
        if snapshot_id not in self:
            return None
        path = self.path(snapshot_id)
        with disk_errors(path, "opening"):
            try:
                handle = self._files.open(path, read_only=True)
                return RawSnapshotReader(snapshot_id, path, handle, handle.size())
            except FileNotFoundError:
                # The file was removed by other means: the snapshot no longer exists.
                with self._lock:
                    self._ids.discard(snapshot_id)
                return None

    def size_bytes(self, snapshot_id: OffsetAndEpoch) -> int | None:
        """Return the size of a snapshot in bytes, or None where it is gone."""
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


def _advice_for_missing(useless: list[SnapshotName], log_start_offset: int) -> str:
    """Return the advice for an operator where no snapshot covers the log's start."""
    marked = [name for name in useless if name.is_deleted and name.id.offset >= log_start_offset]
    latest = max(marked, key=lambda name: name.id, default=None)
    if latest is None:
        return "Restore the snapshot, or empty the directory to fetch all of it anew"
    return (
        f"One that was marked as deleted is still there: rename {latest.name} to "
        f"{snapshot_name(latest.id)}, or empty the directory to fetch all of it anew"
    )


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

    Call `append` for all bytes, then `freeze`; or call `abort`. After a failed write or freeze only
    `abort` is allowed.
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

    def append(self, data: bytes | memoryview) -> None:
        """Append `data` to the file."""
        self._demand_open()
        try:
            with disk_errors(self.path, "appending"):
                self._file.write_at(self.size, data)
        except StorageError:
            self._state = "failed"
            raise
        self.size += len(data)

    def freeze(self) -> None:
        """Make the snapshot durable and read-only, and publish it under its final name."""
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
        """Delete the written bytes; a frozen snapshot is left unchanged."""
        if self._state in {"frozen", "aborted"}:
            return
        self._state = "aborted"
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._files.remove(self.path)

    def read_at(self, position: int, size: int) -> bytes:
        """Return bytes that were written, so that they can be checked before `freeze`."""
        with disk_errors(self.path, "reading"):
            return self._file.read_at(position, min(size, max(self.size - position, 0)))

    def _demand_open(self) -> None:
        if self._state != "open":
            raise PoisonedError(f"the snapshot being written is {self._state}", file=self.path)
