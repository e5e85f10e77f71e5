"""The file of an index, which Kafka and its tools read as well."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from kvorum.storage.files import FileSystem, OpenFile, disk_errors, read_if_there


class Index(Protocol):
    """The entries of an index, as its file needs them."""

    def __len__(self) -> int:
        """Return the number of entries."""
        ...

    def encode(self, first_entry: int = 0) -> bytes:
        """Return the bytes of the entries from `first_entry` on."""
        ...

    def load(self, data: bytes) -> bool:
        """Load the entries of a file; return whether they are sound."""
        ...


class IndexFile:
    """One .index or .timeindex file.

    The file is not synced on its own: it can be rebuilt from the segment at any time. It is not
    preallocated, unlike Kafka's, so it is never longer than its entries.
    """

    def __init__(self, path: Path, index: Index, *, entry_size: int, files: FileSystem) -> None:
        self.path = path
        self._index = index
        self._entry_size = entry_size
        self._files = files
        # The file is created when it is first written: reading a log must change nothing.
        self._file: OpenFile | None = None
        self._stored_count = 0

    def _opened(self) -> OpenFile:
        if self._file is None:
            self._file = self._files.open(self.path, create=True)
        return self._file

    def load(self) -> bool:
        """Load the entries from the file; return False, with no entries, where it is not sound."""
        data = read_if_there(self._files, self.path)
        is_sound = self._index.load(data or b"") and data is not None
        self._stored_count = len(self._index)
        return is_sound

    def store_all(self) -> bool:
        """Make the file hold exactly the entries; return whether it had to be changed."""
        data = self._index.encode()
        with disk_errors(self.path, "writing"):
            file = self._opened()
            size = file.size()
            is_same = size == len(data) and file.read_at(0, size) == data
            if not is_same:
                file.truncate(0)
                file.write_at(0, data)
        self._stored_count = len(self._index)
        return not is_same

    def store_new(self) -> None:
        """Append the entries that are not in the file yet."""
        if len(self._index) == self._stored_count:
            return
        with disk_errors(self.path, "writing"):
            position = self._stored_count * self._entry_size
            self._opened().write_at(position, self._index.encode(self._stored_count))
        self._stored_count = len(self._index)

    def cut(self) -> None:
        """Remove from the file what is no longer among the entries."""
        with disk_errors(self.path, "truncating"):
            self._opened().truncate(len(self._index) * self._entry_size)
        self._stored_count = len(self._index)

    def sync(self) -> None:
        """Make the file durable."""
        with disk_errors(self.path, "syncing"):
            self._opened().sync()

    def move_to(self, path: Path) -> None:
        """Go on with the file under its new name."""
        self.close()
        self._file, self.path = None, path

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
