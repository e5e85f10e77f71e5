"""Keep the entries of an index in its file, which Kafka and its tools read as well."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from kvorum.storage.files import FileSystem, OpenFile, disk_errors


class Index(Protocol):
    """What an index offers to the file that holds it."""

    def __len__(self) -> int:
        """Return how many entries there are."""
        ...

    def encode(self, first_entry: int = 0) -> bytes:
        """Return the bytes of the entries from `first_entry` on."""
        ...


class IndexFile:
    """One .index or .timeindex file.

    Never synced on its own: what is in it can be derived from the segment at any time. Unlike
    Kafka we do not preallocate, so the file is never longer than its entries.
    """

    def __init__(self, path: Path, index: Index, *, entry_size: int, files: FileSystem) -> None:
        self.path = path
        self._index = index
        self._entry_size = entry_size
        with disk_errors(path, "opening"):
            self._file: OpenFile = files.open(path, create=True)
        self._stored_count = 0

    def store_all(self) -> bool:
        """Make the file hold exactly the entries; tell whether it had to be changed."""
        data = self._index.encode()
        with disk_errors(self.path, "writing"):
            size = self._file.size()
            is_same = size == len(data) and self._file.read_at(0, size) == data
            if not is_same:
                self._file.truncate(0)
                self._file.write_at(0, data)
        self._stored_count = len(self._index)
        return not is_same

    def store_new(self) -> None:
        """Append the entries that are not in the file yet."""
        if len(self._index) == self._stored_count:
            return
        with disk_errors(self.path, "writing"):
            position = self._stored_count * self._entry_size
            self._file.write_at(position, self._index.encode(self._stored_count))
        self._stored_count = len(self._index)

    def cut(self) -> None:
        """Drop from the file what is no longer among the entries."""
        with disk_errors(self.path, "truncating"):
            self._file.truncate(len(self._index) * self._entry_size)
        self._stored_count = len(self._index)

    def sync(self) -> None:
        """Make the file durable."""
        with disk_errors(self.path, "syncing"):
            self._file.sync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
