"""A file for columns of integers that would take too much memory."""

from array import array
from typing import BinaryIO, Final, NamedTuple


class StoredColumn(NamedTuple):
    """The place of a column in the file, its type of integers, and their number."""

    position: int
    typecode: str
    length: int


class Spool:
    """A file of columns, each of which is read as a whole."""

    def __init__(self, file: BinaryIO) -> None:
        self._file: Final = file
        self._end = 0

    def store(self, column: "array[int]") -> StoredColumn:
        """Write a column behind those before it."""
        stored = StoredColumn(self._end, column.typecode, len(column))
        self._file.seek(self._end)
        self._file.write(column)
        self._end += len(column) * column.itemsize
        return stored

    def load(self, stored: StoredColumn) -> "array[int]":
        """Read a column back."""
        column: array[int] = array(stored.typecode)
        self._file.seek(stored.position)
        column.frombytes(self._file.read(stored.length * column.itemsize))
        return column
