"""The .txnindex file of a segment: the transactions that were aborted in it (KIP-98).

Entries of 34 bytes, big endian: version (int16, 0), producer id, first offset of the transaction,
offset of its abort marker, and the last stable offset when the marker was written (int64 each).
An entry stands in the segment of the marker, wherever the transaction began. The file is made for
the first entry; most segments have none. A part of an entry at the end is ignored.
"""

import struct
import threading
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kvorum.storage.errors import CorruptFileError
from kvorum.storage.files import FileSystem, OpenFile, disk_errors, read_if_there
from kvorum.storage.log.disk_queue import IN_PLACE, WriteOrder

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0
_ADVICE = "Remove the file and the .index file beside it: the next start makes both anew"


class AbortedTransaction(NamedTuple):
    """One aborted transaction; `last_offset` is the offset of the abort marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedSearch(NamedTuple):
    """The transactions of one index in a range; `is_complete` if no later index adds to them."""

    transactions: tuple[AbortedTransaction, ...]
    is_complete: bool


class TransactionIndex:
    """The aborted transactions of one segment, in the order of their markers.

    The file is read at the first use. One thread owns the index; `sync` may run in another one.
    """

    def __init__(self, path: Path, base_offset: int, *, files: FileSystem) -> None:
        self.path = path
        self.base_offset = base_offset
        self._files = files
        self._file: OpenFile | None = None
        self._loaded: list[AbortedTransaction] | None = None
        self._loading = threading.Lock()

    @property
    def entries(self) -> tuple[AbortedTransaction, ...]:
        """All entries.

        Raises CorruptFileError for an entry of another version than 0, and for a marker that lies
        below the segment or not after the one before.
        """
        return tuple(self._entries())

    def _entries(self) -> list[AbortedTransaction]:
        with self._loading:
            # The cleaner, in its thread, may ask at the same time.
            if self._loaded is None:
                self._loaded = self._decoded(read_if_there(self._files, self.path) or b"")
            return self._loaded

    def _decoded(self, data: bytes) -> list[AbortedTransaction]:
        whole = data[: len(data) - len(data) % _ENTRY.size]
        found: list[AbortedTransaction] = []
        end_offset = self.base_offset
        for version, *fields in _ENTRY.iter_unpack(whole):
            entry = AbortedTransaction._make(fields)
            position = len(found) * _ENTRY.size
            if version != _VERSION:
                raise self._corrupt(f"an aborted transaction of version {version}", position)
            if entry.last_offset < end_offset:
                problem = f"a marker at offset {entry.last_offset}, below {end_offset}"
                raise self._corrupt(problem, position)
            found.append(entry)
            end_offset = entry.last_offset + 1
        return found

    def prepare(self) -> None:
        """Read the entries, and open the file, made if need be.

        A fault that `append` would meet is found before anything relies on the entry.
        Raises CorruptFileError as `entries` does, DiskError, and TooManyOpenFilesError.
        """
        self._entries()
        with disk_errors(self.path, "opening"):
            # One that is open in turns with others is opened by its use.
            self._opened().size()

    def append(self, transaction: AbortedTransaction, order: WriteOrder = IN_PLACE) -> None:
        """Write an entry, not durably, in the `order` of the log's writes.

        A DiskError leaves the index without it. Raises ValueError unless its marker lies after that
        of the entry before.
        """
        entries = self._entries()
        if entries and transaction.last_offset <= entries[-1].last_offset:
            raise ValueError(
                f"a marker at offset {transaction.last_offset} does not follow the one at "
                f"{entries[-1].last_offset}"
            )
        order.do(partial(self._write, len(entries) * _ENTRY.size, transaction))
        entries.append(transaction)

    def _write(self, position: int, transaction: AbortedTransaction) -> None:
        with disk_errors(self.path, "appending"):
            self._opened().write_at(position, _ENTRY.pack(_VERSION, *transaction))

    def find(self, first_offset: int, end_offset: int) -> AbortedSearch:
        """Return the transactions that a reader from `first_offset` to `end_offset` must know.

        These end at `first_offset` or after it and begin below `end_offset` (exclusive). The
        search is complete where a marker was written at a last stable offset at or above the end.
        """
        found: list[AbortedTransaction] = []
        for entry in self._entries():
            if entry.last_offset >= first_offset and entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return AbortedSearch(tuple(found), is_complete=True)
        return AbortedSearch(tuple(found), is_complete=False)

    def truncate_to(self, offset: int) -> None:
        """Remove the entries whose markers lie at `offset` or above."""
        entries = self._entries()
        count = next(
            (number for number, entry in enumerate(entries) if entry.last_offset >= offset),
            len(entries),
        )
        if count < len(entries):
            with disk_errors(self.path, "truncating"):
                self._opened().truncate(count * _ENTRY.size)
            del entries[count:]

    def reset(self) -> None:
        """Remove all entries, also of a file that cannot be read; no file is made."""
        with disk_errors(self.path, "truncating"):
            if self._files.exists(self.path):
                self._opened().truncate(0)
        self._loaded = []

    def sync(self) -> None:
        """Make the file durable, if there is one."""
        with disk_errors(self.path, "syncing"):
            if self._file is not None:
                self._file.sync()

    def move_to(self, path: Path) -> None:
        """Go on with the file under its new name."""
        self.close()
        self.path = path

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _opened(self) -> OpenFile:
        if self._file is None:
            self._file = self._files.open(self.path, create=True)
        return self._file

    def _corrupt(self, problem: str, position: int) -> CorruptFileError:
        return CorruptFileError(problem, file=self.path, offset=position, advice=_ADVICE)


def find_aborted(
    indexes: Iterable[TransactionIndex], first_offset: int, end_offset: int
) -> list[AbortedTransaction]:
    """Return the transactions that a reader of a range must know, in the order of their markers.

    `indexes` are those of the segment that holds `first_offset` and of all after it.
    """
    found: list[AbortedTransaction] = []
    for index in indexes:
        search = index.find(first_offset, end_offset)
        found += search.transactions
        if search.is_complete:
            break
    return found
