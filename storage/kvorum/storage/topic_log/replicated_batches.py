"""The batches of a leader's fetch response that a follower may append."""

from __future__ import annotations

from kvorum.wire.records.legacy import Entry, read_entries


def replicated_batches(records: bytes | memoryview, *, leader_epoch: int) -> list[Entry]:
    """Return the whole batches up to the first one of an epoch above `leader_epoch`.

    The response may end within a batch. It may also have batches that the leader wrote in a later
    epoch than that of the request: what precedes these may have been truncated meanwhile, so they
    are left to the next fetch. Raises CorruptBatchError where a checksum is wrong.
    """
    batches: list[Entry] = []
    for batch in read_entries(records, is_cut_allowed=True):
        if batch.partition_leader_epoch > leader_epoch:
            break
        batch.verify()
        batches.append(batch)
    return batches
