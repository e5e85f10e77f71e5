"""Rows of a table, with columns as numpy arrays or lists of Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

Int64s: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

MISSING: Final = -(2**63)
"""Stands for null in arrays of integers and times."""

# The stubs of pyarrow do not know the types of columns.
_compute: Any = pyarrow.compute


class Rows:
    """Some columns of some rows of a table."""

    def __init__(self, table: Any) -> None:
        """Take an Arrow table."""
        self._table = table

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self._table.num_rows)

    def integers(self, name: str) -> Int64s:
        """Return a column of integers, `MISSING` for null."""
        return _integers(self._table.column(name))

    def times_ms(self, name: str) -> Int64s:
        """Return a column of timestamps in milliseconds since 1970, `MISSING` for null."""
        microseconds = _integers(self._table.column(name))
        return np.where(microseconds == MISSING, MISSING, microseconds // 1000)

    def flags(self, name: str) -> Bools:
        """Return a column of truth values; null is False."""
        flags: Bools = _compute.fill_null(self._table.column(name), False).to_numpy()
        return flags

    def equal(self, name: str, value: str) -> Bools:
        """Return in which rows a column of texts has `value`."""
        equal = _compute.equal(self._table.column(name), value)
        flags: Bools = _compute.fill_null(equal, False).to_numpy()
        return flags

    def values(self, name: str) -> list[Any]:
        """Return a column as values of Python."""
        values: list[Any] = self._table.column(name).to_pylist()
        return values

    def coded(self, name: str) -> tuple[Int64s, list[str]]:
        """Return a column of texts as numbers into a list of the different texts."""
        encoded = self._table.column(name).combine_chunks().dictionary_encode()
        return _integers(encoded.indices), encoded.dictionary.to_pylist()

    def items(self, name: str) -> Int64s:
        """Return the integers in a column of lists, of all rows in their order."""
        return _integers(_compute.list_flatten(self._table.column(name)))

    def first_items(self, name: str) -> Int64s:
        """Return the first integer of each list in a column, `MISSING` for an empty list."""
        padded = _compute.list_slice(self._table.column(name), 0, 1, return_fixed_size_list=True)
        return _integers(_compute.list_element(padded, 0))

    def dicts(self, *names: str) -> list[dict[str, Any]]:
        """Return each row as a dictionary of the columns `names`."""
        dicts: list[dict[str, Any]] = self._table.select(list(names)).to_pylist()
        return dicts

    def distinct_count(self, *names: str) -> int:
        """Return how many different values the columns `names` have together."""
        return int(self._table.group_by(list(names)).aggregate([]).num_rows)

    def where(self, mask: Bools) -> Rows:
        """Return the rows for which `mask` holds."""
        return Rows(self._table.filter(pa.array(mask)))

    def at(self, indices: Sequence[int] | NDArray[Any]) -> Rows:
        """Return the rows at `indices`, in their order."""
        return Rows(self._table.take(pa.array(indices, pa.int64())))

    def part(self, begin: int, end: int) -> Rows:
        """Return the rows from one index up to another."""
        return Rows(self._table.slice(begin, end - begin))


def _integers(column: Any) -> Int64s:
    integers: Int64s = _compute.fill_null(_compute.cast(column, pa.int64()), MISSING).to_numpy()
    return integers
