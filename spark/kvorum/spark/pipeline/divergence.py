"""Places at which two replicas of one log differ, found by comparing the headers of batches.

Every batch of a metadata log is the same on every replica: followers append the leader's bytes. So
two replicas agree where base offset, epoch, size and checksum of a batch are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum, unique
from typing import NamedTuple

from kvorum.spark.pipeline.header_walk import BatchPlace


@unique
class DifferenceKind(StrEnum):
    """The records of one replica where another one has others, or none."""

    OTHER_EPOCH = "other_epoch"
    OTHER_CONTENT = "other_content"
    MISSING = "missing"
    EXTRA = "extra"
    BEHIND = "behind"
    BEYOND = "beyond"


class Difference(NamedTuple):
    """Offsets from `from_offset` up to `to_offset`, itself not included, that differ in one way.

    `epoch` is that of the first of these batches on the replica, `reference_epoch` on the
    reference; None without a batch.
    """

    kind: DifferenceKind
    from_offset: int
    to_offset: int
    epoch: int | None
    reference_epoch: int | None

    @property
    def is_divergence(self) -> bool:
        """Whether both cannot be right: a replica that only has less so far has not diverged."""
        return self.kind is not DifferenceKind.BEHIND


def differences(
    reference: Iterable[BatchPlace], replica: Iterable[BatchPlace]
) -> Iterator[Difference]:
    """Yield where a replica differs from the reference, by offset; adjacent places as one.

    Where one log begins later the offsets before are not compared: a node may delete what its
    snapshots cover.
    """
    last: Difference | None = None
    for found in _places(iter(reference), iter(replica)):
        if last is not None and last.kind is found.kind and last.to_offset == found.from_offset:
            last = last._replace(to_offset=found.to_offset)
            continue
        if last is not None:
            yield last
        last = found
    if last is not None:
        yield last


def _places(reference: Iterator[BatchPlace], replica: Iterator[BatchPlace]) -> Iterator[Difference]:
    ours, theirs = next(reference, None), next(replica, None)
    if ours is not None and theirs is not None:
        start = max(ours.base_offset, theirs.base_offset)
        while ours is not None and ours.base_offset < start:
            ours = next(reference, None)
        while theirs is not None and theirs.base_offset < start:
            theirs = next(replica, None)
    while ours is not None and theirs is not None:
        if ours == theirs:
            ours, theirs = next(reference, None), next(replica, None)
        elif ours.base_offset < theirs.base_offset:
            until = min(ours.next_offset, theirs.base_offset)
            yield Difference(DifferenceKind.MISSING, ours.base_offset, until, None, ours.epoch)
            ours = next(reference, None)
        elif theirs.base_offset < ours.base_offset:
            until = min(theirs.next_offset, ours.base_offset)
            yield Difference(DifferenceKind.EXTRA, theirs.base_offset, until, theirs.epoch, None)
            theirs = next(replica, None)
        else:
            yield _unequal(ours, theirs)
            ours, theirs = _past(ours, theirs, reference, replica)
    while ours is not None:
        yield Difference(
            DifferenceKind.BEHIND, ours.base_offset, ours.next_offset, None, ours.epoch
        )
        ours = next(reference, None)
    while theirs is not None:
        yield Difference(
            DifferenceKind.BEYOND, theirs.base_offset, theirs.next_offset, theirs.epoch, None
        )
        theirs = next(replica, None)


def _unequal(ours: BatchPlace, theirs: BatchPlace) -> Difference:
    is_other_epoch = ours.epoch != theirs.epoch
    kind = DifferenceKind.OTHER_EPOCH if is_other_epoch else DifferenceKind.OTHER_CONTENT
    until = max(ours.next_offset, theirs.next_offset)
    return Difference(kind, ours.base_offset, until, theirs.epoch, ours.epoch)


def _past(
    ours: BatchPlace | None,
    theirs: BatchPlace | None,
    reference: Iterator[BatchPlace],
    replica: Iterator[BatchPlace],
) -> tuple[BatchPlace | None, BatchPlace | None]:
    """Return the next batches behind two unequal ones, where neither overlaps what was compared."""
    assert ours is not None
    assert theirs is not None
    until = max(ours.next_offset, theirs.next_offset)
    while ours is not None and ours.base_offset < until:
        ours = next(reference, None)
    while theirs is not None and theirs.base_offset < until:
        theirs = next(replica, None)
    return ours, theirs
