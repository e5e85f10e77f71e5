"""Checks of batches: whether they continue a log, and whether they are the ones written to it."""

from __future__ import annotations

from kvorum.storage.log.batch_header import NO_EPOCH, BatchHeader, split_batches
from kvorum.storage.log.epochs import LeaderEpochs


def continues(base_offset: int, end_offset: int, *, may_have_gaps: bool) -> bool:
    """Return whether a batch with that base offset may follow one that ends at `end_offset`."""
    return base_offset >= end_offset if may_have_gaps else base_offset == end_offset


def headers_that_continue(
    data: memoryview, *, end_offset: int, epoch: int, may_have_gaps: bool = False
) -> list[BatchHeader]:
    """Return the headers of whole batches that continue a log at `end_offset` in `epoch` or later.

    Raises ValueError unless there is at least one, every one is sound, begins at the offset where
    the one before it ends (or above it, in a log with gaps), and has no lower epoch.
    """
    headers: list[BatchHeader] = []
    for header, _ in split_batches(data):
        is_next = continues(header.base_offset, end_offset, may_have_gaps=may_have_gaps)
        # Only logs of topics may have gaps, or be older than leader epochs.
        is_older = may_have_gaps and header.leader_epoch == NO_EPOCH
        if not is_next or (header.leader_epoch < epoch and not is_older):
            raise ValueError(
                f"a batch at offset {header.base_offset} of epoch {header.leader_epoch} "
                f"does not continue a log that ends at {end_offset} in epoch {epoch}"
            )
        end_offset, epoch = header.next_offset, max(header.leader_epoch, epoch)
        headers.append(header)
    if not headers:
        raise ValueError("there is no batch to append")
    return headers


def check_as_written(
    data: memoryview,
    *,
    first_offset: int,
    log_start_offset: int,
    epochs: LeaderEpochs,
    may_have_gaps: bool = False,
) -> None:
    """Raise ValueError unless these are the batches of a log from the one with `first_offset` on.

    In a log with gaps the first may begin above that offset. A batch's checksum does not cover its
    offset and epoch, so these are compared with the log's. A reader must never get corrupted bytes.
    """
    expected = first_offset
    for header, _ in split_batches(data):
        offset = header.base_offset
        if expected == first_offset:
            is_there = header.next_offset > expected and (may_have_gaps or offset <= expected)
        else:
            is_there = continues(offset, expected, may_have_gaps=may_have_gaps)
        is_older = may_have_gaps and header.leader_epoch == NO_EPOCH
        epoch = None if is_older else epochs.epoch_at(max(offset, log_start_offset))
        if not is_there or (epoch is not None and header.leader_epoch != epoch):
            problem = f"a batch of offset {offset} and epoch {header.leader_epoch}"
            raise ValueError(f"{problem} lies where {expected}, of epoch {epoch}, belongs")
        expected = header.next_offset
