"""The arithmetic of quorums: majorities, the result of votes, and the high watermark.

It knows numbers only, not who the voters are.
"""

from collections.abc import Sequence


def majority_of(voter_count: int) -> int:
    """Return how many of `voter_count` voters are a majority."""
    return voter_count // 2 + 1


def is_election_won(*, voter_count: int, granted_count: int) -> bool:
    """Return whether a majority granted its vote."""
    return granted_count >= majority_of(voter_count)


def is_election_lost(*, voter_count: int, granted_count: int, unrecorded_count: int) -> bool:
    """Return whether so many voters refused that a majority has become impossible."""
    return granted_count + unrecorded_count < majority_of(voter_count)


def majority_offset(end_offsets: Sequence[int]) -> int:
    """Return the highest offset that a majority has reached; raise ValueError for no voters."""
    if not end_offsets:
        raise ValueError("there are no voters")
    return sorted(end_offsets, reverse=True)[len(end_offsets) // 2]


def advanced_high_watermark(
    *, current: int | None, end_offsets: Sequence[int], epoch_start_offset: int
) -> int | None:
    """Return the new high watermark, or None where it stays.

    It rises only to an offset after the first record of the leader's own epoch: committing that
    record commits the records of earlier leaders before it (section 5.4.2 of the Raft paper).
    """
    if not end_offsets:
        return None
    offset = majority_offset(end_offsets)
    if offset <= epoch_start_offset:
        return None
    return offset if current is None or offset > current else None
