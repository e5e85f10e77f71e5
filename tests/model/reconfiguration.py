"""Voter changes: one voter at a time, in force as soon as the record is appended (KIP-853)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.design import Design
from tests.model.state import LEADER, Entry, Node, bit, voters_of


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
    return design.changes_voters_twice or not any(entry.voters for entry in uncommitted)


def changes(design: Design, voters: int, *, node_count: int) -> Iterator[int]:
    """Yield the voter sets that may follow one: with one voter more or less, but never none."""
    for index in range(node_count):
        changed = voters ^ bit(index)
        if changed:
            yield changed
        if design.changes_many_voters:
            for other in range(index):
                if changed ^ bit(other):
                    yield changed ^ bit(other)


def with_change(own: int, node: Node, *, voters: int, syncs: bool) -> Node:
    """Return a leader that has appended a voter record."""
    log = (*node.log, Entry(node.epoch, own, 0, voters))
    return node._replace(log=log, durable=len(log) if syncs else node.durable)


def is_removed(own: int, node: Node, *, first_voters: int) -> bool:
    """Tell whether a leader's removal from the voters is committed, so that it has to go."""
    is_voter = voters_of(node.log, first_voters) & bit(own)
    uncommitted = node.log[node.watermark :]
    if node.role != LEADER or is_voter or not node.watermark:
        return False
    return not any(entry.voters for entry in uncommitted)
