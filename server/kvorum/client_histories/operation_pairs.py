"""Pairs of operations, in the order in which they are added."""

from array import array
from collections.abc import Iterator
from typing import Final

from kvorum.client_histories.spool import Spool, StoredColumn

PAIRS_IN_MEMORY_MAX: Final = 1 << 20
"""The number of pairs from which on they go to the file, if there is one."""


class OperationPairs:
    """Two columns of operations, one beside the other."""

    def __init__(self, spool: Spool | None, kept_max: int = PAIRS_IN_MEMORY_MAX) -> None:
        """With a spool no more than `kept_max` pairs stay in memory."""
        self._spool = spool
        self._kept_max = kept_max
        self._firsts = array("I")
        self._seconds = array("I")
        self._pieces: list[tuple[StoredColumn, StoredColumn]] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for firsts, seconds in self._pieces:
            assert self._spool is not None
            yield from zip(self._spool.load(firsts), self._spool.load(seconds), strict=True)
        yield from zip(self._firsts, self._seconds, strict=True)

    def add(self, first: int, second: int) -> None:
        """Add a pair."""
        self._firsts.append(first)
        self._seconds.append(second)
        if self._spool is not None and len(self._firsts) >= self._kept_max:
            self._pieces.append((self._spool.store(self._firsts), self._spool.store(self._seconds)))
            self._firsts = array("I")
            self._seconds = array("I")
