"""The replica of a log that the tables are made from, and where the others differ from it.

Every batch of a metadata log is the same on every replica: followers append the leader's bytes. So
two replicas agree where base offset, epoch, size and checksum of a batch are equal. No record is
read, and no checksum verified: where it is wrong, reading the records finds out. A header that
cannot be one ends the walk through its file.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum, unique
from typing import Any, NamedTuple

from kvorum.log_files.batch_places import header_at, header_problem, opened_window
from kvorum.log_files.find import LogFile
from kvorum.spark.pipeline.replicas import ENDLESS, ReadableReplica, Replica
from kvorum.spark.pipeline.tables import ReplicaDivergenceRow


class BatchPlace(NamedTuple):
    """The batch of one replica at an offset: its end, and its identity."""

    base_offset: int
    next_offset: int
    epoch: int
    crc: int
    size: int


def batch_places(replica: Replica, options: Mapping[str, Any]) -> Iterator[BatchPlace]:
    """Yield the batches of a replica's segments, whose offsets ascend.

    A file that cannot be read ends in the same way as a damaged one.
    """
    offset = -1
    for file in replica.segments:
        for place in _places_in(file, options):
            if place.base_offset >= offset:
                yield place
                offset = place.next_offset


def _places_in(file: LogFile, options: Mapping[str, Any]) -> Iterator[BatchPlace]:
    position = 0
    try:
        with opened_window(file, options) as window:
            while (header := header_at(window, position)) is not None:
                end = position + header.size
                if header_problem(header) is not None or end > window.end:
                    return
                yield BatchPlace(
                    header.base_offset,
                    header.next_offset,
                    header.leader_epoch,
                    header.crc,
                    header.size,
                )
                position = end
    except OSError:
        return


def last_place(replica: Replica, options: Mapping[str, Any]) -> BatchPlace | None:
    """Return the last batch of a replica; None where no segment has one."""
    for file in reversed(replica.segments):
        last = None
        for place in _places_in(file, options):
            last = place
        if last is not None:
            return last
    return None


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
        ours, theirs = _from(start, ours, reference), _from(start, theirs, replica)
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
            is_other_epoch = ours.epoch != theirs.epoch
            kind = DifferenceKind.OTHER_EPOCH if is_other_epoch else DifferenceKind.OTHER_CONTENT
            until = max(ours.next_offset, theirs.next_offset)
            yield Difference(kind, ours.base_offset, until, theirs.epoch, ours.epoch)
            ours, theirs = _from(until, ours, reference), _from(until, theirs, replica)
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


def _from(
    offset: int, batch: BatchPlace | None, following: Iterator[BatchPlace]
) -> BatchPlace | None:
    """Return the first of a batch and those that follow it that begins at `offset` or after it."""
    while batch is not None and batch.base_offset < offset:
        batch = next(following, None)
    return batch


def by_preference(
    replicas: Sequence[Replica], options: Mapping[str, Any]
) -> tuple[ReadableReplica, ...]:
    """Return the replicas, the one that reached furthest first: the reference.

    A log whose last batch has a higher epoch reached further than a longer one, by the rule that
    voters elect by: the end of the longer one may never have been committed.
    """
    if len(replicas) == 1:
        # It is the only one, so the end need not be known before it is read.
        return (ReadableReplica(replicas[0], ENDLESS),)
    ranked: list[tuple[tuple[int, int], ReadableReplica]] = []
    for replica in replicas:
        last = last_place(replica, options)
        if last is not None:
            rank = (last.epoch, last.next_offset)
        else:
            rank = max(
                ((file.epoch, file.offset or 0) for file in replica.snapshots), default=(0, 0)
            )
        ranked.append((rank, ReadableReplica(replica, rank[1])))
    # Of equal ones the first in order, so that a later run chooses the same.
    return tuple(each for _, each in sorted(ranked, key=lambda each: each[0], reverse=True))


def divergence_rows(
    reference: Replica, others: Sequence[Replica], options: Mapping[str, Any]
) -> Iterator[ReplicaDivergenceRow]:
    """Yield where each of the other replicas differs from the reference."""
    for replica in others:
        for each in differences(batch_places(reference, options), batch_places(replica, options)):
            yield ReplicaDivergenceRow(
                node_id=replica.node_id,
                log_directory=replica.log_directory,
                reference_node_id=reference.node_id,
                reference_log_directory=reference.log_directory,
                kind=each.kind,
                is_divergence=each.is_divergence,
                from_offset=each.from_offset,
                to_offset=each.to_offset,
                epoch=each.epoch,
                reference_epoch=each.reference_epoch,
            )
