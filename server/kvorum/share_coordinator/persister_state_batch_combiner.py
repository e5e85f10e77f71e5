"""The batches of a share partition after new ones have come (Kafka's PersisterStateBatchCombiner).

Where batches overlap, the one with more deliveries counts, and among equal ones the one with the
later state. Neighbours that are alike become one batch; nothing before the start offset is kept.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from kvorum.metadata.api import RequestError
from kvorum.share_coordinator.persister_state_batch import PersisterStateBatch
from kvorum.wire.error_codes import ErrorCode

NO_START_OFFSET: Final = -1
_OFFSET_MAX: Final = (1 << 63) - 1
_FIRST_OFFSET: Final = itemgetter(0)
_LAST_OFFSET: Final = itemgetter(1)


class _Priority(NamedTuple):
    """The greatest priority of the batches at an offset is that of the batch that counts."""

    delivery_count: int
    delivery_state: int


class _Edge(NamedTuple):
    """An offset at which a batch begins, or the offset after its end; ends come first."""

    offset: int
    is_begin: bool
    priority: _Priority


class DisorderedBatchError(RequestError):
    """A batch that ends before it begins cannot be combined with others."""

    def __init__(self) -> None:
        text = "A batch of records ends before it begins."
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, text)


def combined_state_batches(
    so_far: tuple[PersisterStateBatch, ...],
    new: Iterable[PersisterStateBatch],
    start_offset: int,
    *,
    are_combined: bool = False,
) -> tuple[PersisterStateBatch, ...]:
    """Return disjoint batches, by offset, from `start_offset` on; with -1 from the first on.

    A batch that is alone is not looked at. Where `so_far` is a result of several batches, so that
    they `are_combined`, those that are far from all new ones are not looked at either. Raises
    `DisorderedBatchError`.
    """
    added = _pruned(new, start_offset)
    if are_combined and all(batch.first_offset <= batch.last_offset for batch in added):
        begin = bisect_left(so_far, start_offset, key=_LAST_OFFSET)
        first = _pruned(so_far[begin : begin + 1], start_offset)
        return _inserted((*first, *so_far[begin + 1 :]), added)
    kept = [*_pruned(so_far, start_offset), *added]
    return tuple(kept if len(kept) <= 1 else _swept(kept))


def _pruned(batches: Iterable[PersisterStateBatch], start_offset: int) -> list[PersisterStateBatch]:
    """Return what batches have from an offset on."""
    if start_offset == NO_START_OFFSET:
        return list(batches)
    return [
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch.last_offset >= start_offset
    ]


def _inserted(
    combined: tuple[PersisterStateBatch, ...], added: list[PersisterStateBatch]
) -> tuple[PersisterStateBatch, ...]:
    """Combine batches with those that overlap them, or that they touch."""
    if not added or len(combined) + len(added) == 1:
        return (*combined, *added)
    lowest = min(batch.first_offset for batch in added)
    highest = max(batch.last_offset for batch in added)
    begin = bisect_left(combined, lowest - 1, key=_LAST_OFFSET)
    end = bisect_right(combined, highest + 1, key=_FIRST_OFFSET)
    between = _swept([*combined[begin:end], *added])
    return (*combined[:begin], *between, *combined[end:])


def _swept(batches: Sequence[PersisterStateBatch]) -> list[PersisterStateBatch]:
    """Return the batches that count, edge by edge."""
    found: list[PersisterStateBatch] = []
    active: Counter[_Priority] = Counter()
    open_from = NO_START_OFFSET
    for edge in sorted(_edges(batches), key=lambda edge: edge[:2]):
        if active and edge.offset > open_from:
            _add(found, open_from, edge.offset - 1, max(active))
        open_from = edge.offset
        if edge.is_begin:
            active[edge.priority] += 1
            continue
        if edge.priority not in active:
            raise DisorderedBatchError
        active[edge.priority] -= 1
        if not active[edge.priority]:
            del active[edge.priority]
    return found


def _edges(batches: Iterable[PersisterStateBatch]) -> Iterable[_Edge]:
    for batch in batches:
        if batch.last_offset == _OFFSET_MAX:
            # There is no offset after it.
            raise DisorderedBatchError
        priority = _Priority(batch.delivery_count, batch.delivery_state)
        yield _Edge(batch.first_offset, True, priority)
        yield _Edge(batch.last_offset + 1, False, priority)


def _add(
    found: list[PersisterStateBatch], first_offset: int, last_offset: int, priority: _Priority
) -> None:
    """Append a batch, or extend the last one where it goes on."""
    batch = PersisterStateBatch(
        first_offset, last_offset, priority.delivery_state, priority.delivery_count
    )
    if found and found[-1].last_offset + 1 == first_offset and found[-1][2:] == batch[2:]:
        batch = batch._replace(first_offset=found.pop().first_offset)
    found.append(batch)
