"""Checks of batches: whether they continue a log, and whether they are the ones written to it."""

from __future__ import annotations

from kvorum.storage.batch_header import BatchHeader, split_batches
from kvorum.storage.epochs import LeaderEpochs


def headers_that_continue(data: memoryview, *, end_offset: int, epoch: int) -> list[BatchHeader]:
    """Return the headers of whole batches that continue a log at `end_offset` in `epoch` or later.

    Raises ValueError unless there is at least one, every one is sound, begins at the offset where
    the one before it ends, and has no lower epoch.
    """
    headers: list[BatchHeader] = []
    for header, _ in split_batches(data):
        if header.base_offset != end_offset or header.leader_epoch < epoch:
            raise ValueError(
                f"a batch at offset {header.base_offset} of epoch {header.leader_epoch} "
                f"does not continue a log that ends at {end_offset} in epoch {epoch}"
            )
        end_offset, epoch = header.next_offset, header.leader_epoch
        headers.append(header)
    if not headers:
        raise ValueError("there is no batch to append")
    return headers


def check_as_written(
    data: memoryview, *, first_offset: int, log_start_offset: int, epochs: LeaderEpochs
) -> None:
    """Raise ValueError unless these are the batches of a log from the one with `first_offset` on.

    A batch's checksum does not cover its offset and epoch, so these are compared with the log's.
    A reader must never get corrupted bytes.
    """
    expected = first_offset
    for header, _ in split_batches(data):
        offset = header.base_offset
        is_there = offset <= expected if expected == first_offset else offset == expected
        epoch = epochs.epoch_at(max(offset, log_start_offset))
        if not is_there or (epoch is not None and header.leader_epoch != epoch):
            problem = f"a batch of offset {offset} and epoch {header.leader_epoch}"
            raise ValueError(f"{problem} lies where {expected}, of epoch {epoch}, belongs")
        expected = header.next_offset
