"""The batches of a share partition after new ones have come (Kafka's PersisterStateBatchCombiner).

Where batches overlap, the one with more deliveries counts, and among equal ones the one with the
later state. Neighbours that are alike become one batch; nothing before the start offset is kept.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kvorum.metadata.api import RequestError
from kvorum.share_coordinator.persister_state_batch import PersisterStateBatch
from kvorum.wire.error_codes import ErrorCode

NO_START_OFFSET: Final = -1
_OFFSET_MAX: Final = (1 << 63) - 1


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
    so_far: Iterable[PersisterStateBatch],
    new: Iterable[PersisterStateBatch],
    start_offset: int,
) -> tuple[PersisterStateBatch, ...]:
    """Return disjoint batches, by offset, from `start_offset` on; with -1 from the first on.

    A batch that is alone is not looked at. Raises `DisorderedBatchError`.
    """
    kept = [
        batch._replace(first_offset=max(batch.first_offset, start_offset))
        if start_offset != NO_START_OFFSET
        else batch
        for batch in (*so_far, *new)
        if start_offset == NO_START_OFFSET or batch.last_offset >= start_offset
    ]
    if len(kept) <= 1:
        return tuple(kept)
    return tuple(_swept(kept))


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
