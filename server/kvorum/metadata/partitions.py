"""The partitions of one topic by index, in little memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final

from kvorum.metadata.partition import PartitionRegistration

_NOTHING: Final[Mapping[int, PartitionRegistration]] = MappingProxyType({})


class Partitions(Mapping[int, PartitionRegistration]):
    """An immutable mapping from index to partition, iterated in order of the indexes.

    Partitions are numbered without gaps, so a tuple holds them. A log may still create them in any
    order: a partition above a gap is kept in a separate mapping until the gap is filled.
    """

    __slots__ = ("_behind_gap", "_dense")

    def __init__(
        self,
        dense: tuple[PartitionRegistration, ...] = (),
        behind_gap: Mapping[int, PartitionRegistration] = _NOTHING,
    ) -> None:
        """Hold partitions 0, 1, … and those whose index is above the first missing one."""
        self._dense = dense
        self._behind_gap = behind_gap

    def __getitem__(self, index: int) -> PartitionRegistration:
        """Return a partition; `KeyError` without one."""
        if 0 <= index < len(self._dense):
            return self._dense[index]
        return self._behind_gap[index]

    def __iter__(self) -> Iterator[int]:
        """Yield every index in order."""
        return chain(range(len(self._dense)), sorted(self._behind_gap))

    def __len__(self) -> int:
        """Return the number of partitions."""
        return len(self._dense) + len(self._behind_gap)

    def __eq__(self, other: object) -> bool:
        """Compare with other partitions, or with any mapping."""
        if isinstance(other, Partitions):
            return self._dense == other._dense and self._behind_gap == other._behind_gap
        return super().__eq__(other)

    def __hash__(self) -> int:
        """Return a hash, which is the same for equal partitions."""
        return hash((self._dense, len(self._behind_gap)))

    def in_order(self) -> Iterable[tuple[int, PartitionRegistration]]:
        """Return index and partition, by index; faster than `items`."""
        if not self._behind_gap:
            return enumerate(self._dense)
        return chain(enumerate(self._dense), sorted(self._behind_gap.items()))

    def edit(self) -> PartitionsEditor:
        """Return an editor that starts with these partitions."""
        return PartitionsEditor(self._dense, self._behind_gap)


NO_PARTITIONS: Final = Partitions()


class PartitionsEditor:
    """A mutable copy of `Partitions`, from which `finish` makes a new immutable one."""

    __slots__ = ("_behind_gap", "_dense")

    def __init__(
        self,
        dense: tuple[PartitionRegistration, ...],
        behind_gap: Mapping[int, PartitionRegistration],
    ) -> None:
        self._dense = list(dense)
        self._behind_gap = dict(behind_gap)

    def get(self, index: int) -> PartitionRegistration | None:
        """Return the current partition, None without one."""
        if 0 <= index < len(self._dense):
            return self._dense[index]
        return self._behind_gap.get(index)

    def put(self, index: int, partition: PartitionRegistration) -> None:
        """Add or replace a partition."""
        count = len(self._dense)
        if 0 <= index < count:
            self._dense[index] = partition
        elif index == count:
            self._dense.append(partition)
            while self._behind_gap and len(self._dense) in self._behind_gap:
                self._dense.append(self._behind_gap.pop(len(self._dense)))
        else:
            self._behind_gap[index] = partition

    def finish(self) -> Partitions:
        """Return the current partitions."""
        if not self._behind_gap:
            return Partitions(tuple(self._dense))
        return Partitions(tuple(self._dense), MappingProxyType(dict(self._behind_gap)))
