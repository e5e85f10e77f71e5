"""Raft's log matching, spelled out: which logs could come from one cluster."""


def is_log_matching(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two logs, given by their records' epochs, could come from one cluster.

    A leader writes its epoch's records one after the other from where its log ended, so where both
    logs have records of an epoch, it begins at the same offset in both.
    """
    starts = [{epoch: log.index(epoch) for epoch in set(log)} for log in (one, other)]
    shared = set(one) & set(other)
    if any(starts[0][epoch] != starts[1][epoch] for epoch in shared):
        return False
    # Records before a shared epoch are shared too: a leader's log begins with what it had.
    return all(one[: starts[0][epoch]] == other[: starts[0][epoch]] for epoch in shared)
