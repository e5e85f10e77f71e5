"""Voter changes: one voter at a time, in force as soon as the record is appended (KIP-853)."""

from collections.abc import Iterable, Iterator

from tests.model.exploration.design import Design
from tests.model.exploration.state import LEADER, Node, bit, members, node_of, replica_of, voters_of


def may_change(design: Design, node: Node) -> bool:
    """Tell whether a leader may begin a voter change.

    It must have committed a record of its own epoch, and the last voter record must be committed.
    """
    if node.role != LEADER:
        return False
    if node.watermark == 0 and not design.changes_voters_before_own_commit:
        return False
    uncommitted = node.log[max(node.watermark, node.start) :]
    if design.changes_voters_before_own_commit:
        uncommitted = tuple(entry for entry in uncommitted if entry.epoch == node.epoch)
    if design.changes_voters_twice or design.forgets_changes_out_of_time:
        return True
    return not any(entry.voters for entry in uncommitted)


def voters_to_change(design: Design, node: Node, *, first_voters: int) -> int:
    """Return the voters that a leader's next change begins from.

    Kafka's begins from those before a change that ran out of time, until the leader has read that
    change's record from its log (KAFKA-20740).
    """
    log = node.log[: node.watermark] if design.forgets_changes_out_of_time else node.log
    return voters_of(log, first_voters)


def changes(design: Design, voters: int, *, replicas: Iterable[int]) -> Iterator[int]:
    """Yield the voter sets that may follow one: with one voter more or less, but never none.

    Any of the `replicas` may be added, unless its node is a voter already with another directory.
    """
    known = {node_of(voter) for voter in members(voters)}
    new = {replica for replica in replicas if node_of(replica) not in known}
    changing = sorted({*members(voters), *new})
    for index, replica in enumerate(changing):
        changed = voters ^ bit(replica)
        if changed:
            yield changed
        if design.changes_many_voters:
            for other in changing[:index]:
                if changed ^ bit(other):
                    yield changed ^ bit(other)


def is_removed(own: int, node: Node, *, first_voters: int) -> bool:
    """Tell whether a leader's removal from the voters is committed, so that it has to go."""
    is_voter = voters_of(node.log, first_voters) & bit(replica_of(own, node))
    uncommitted = node.log[node.watermark :]
    if node.role != LEADER or is_voter or not node.watermark:
        return False
    return not any(entry.voters for entry in uncommitted)
