"""Nodes are alike: states that differ only in which node is which are explored once."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby, permutations, product
from typing import TypeAlias

from tests.model.exploration.state import (
    NOBODY,
    Entry,
    History,
    Log,
    Message,
    Node,
    Reply,
    Request,
    State,
    members,
    node_of,
)

Renaming: TypeAlias = tuple[int, ...]
"""The new number of each node."""


def canonical(state: State) -> State:
    """Return the one of all renamed states that is explored."""
    return min(renamed(state, renaming) for renaming in _renamings(state))


def _renamings(state: State) -> Iterator[Renaming]:
    """Yield the renamings that put the nodes in order of what they look like from outside."""
    looks = [(_look(state, index), index) for index in range(len(state.nodes))]
    looks.sort()
    alike = [[index for _, index in group] for _, group in groupby(looks, key=lambda one: one[0])]
    for orders in product(*(permutations(group) for group in alike)):
        order = [index for group in orders for index in group]
        renaming = [0] * len(order)
        for position, index in enumerate(order):
            renaming[index] = position
        yield tuple(renaming)


def _look(state: State, index: int) -> tuple[object, ...]:
    """Return what a node is like, in words that do not depend on numbers."""
    node = state.nodes[index]
    return (
        _own_look(node, index),
        (state.first_voters >> index & 1, state.dead >> index & 1),
        _votes_won(state.history, index),
    )


@lru_cache(maxsize=1 << 16)
def _votes_won(history: History, index: int) -> tuple[int, ...]:
    return tuple(sum(mask >> index & 1 for mask in votes) for votes in history.votes)


@lru_cache(maxsize=1 << 18)
def _own_look(node: Node, index: int) -> tuple[object, ...]:
    return (
        node.role,
        node.epoch,
        (node.leader == index) - (node.leader == NOBODY),
        (node_of(node.voted) == index) - (node.voted == NOBODY),
        tuple(_entry_look(entry, index) for entry in node.log),
        node[5:10],
        node.tally.bit_count(),
        node.download,
        node.directory,
    )


def _entry_look(entry: Entry, index: int) -> tuple[object, ...]:
    targets = entry.targets
    is_wanted = targets > 0 and targets >> index & 1
    return entry.epoch, entry.value, node_of(entry.author) == index, targets.bit_count(), is_wanted


def renamed(state: State, renaming: Renaming) -> State:
    nodes: list[Node | None] = [None] * len(renaming)
    for index, node in enumerate(state.nodes):
        nodes[renaming[index]] = renamed_node(node, renaming)
    return State(
        tuple(node for node in nodes if node is not None),
        tuple(sorted(_message(one, renaming) for one in state.network)),
        _history(state.history, renaming),
        state.spent,
        mask_of(state.first_voters, renaming),
        mask_of(state.dead, renaming),
    )


@lru_cache(maxsize=1 << 16)
def _history(history: History, renaming: Renaming) -> History:
    back = _back(renaming)
    return History(
        leaders=tuple(mask_of(mask, renaming) for mask in history.leaders),
        votes=tuple(
            tuple(mask_of(of_epoch[index], renaming) for index in back)
            for of_epoch in history.votes
        ),
        committed=_log(history.committed, renaming),
        counted_by=mask_of(history.counted_by, renaming),
    )


@lru_cache(maxsize=1 << 18)
def renamed_node(node: Node, renaming: Renaming) -> Node:
    """Return a node in the new names of the nodes it knows."""
    back = _back(renaming)
    return node._replace(
        leader=_name(node.leader, renaming),
        voted=_name(node.voted, renaming),
        log=_log(node.log, renaming),
        tally=mask_of(node.tally, renaming),
        progress=tuple(tuple(row[index] for index in back) for row in node.progress),
    )


@lru_cache(maxsize=1 << 16)
def _log(log: Log, renaming: Renaming) -> Log:
    return tuple(
        entry._replace(
            author=_name(entry.author, renaming),
            voters=mask_of(entry.voters, renaming),
            targets=mask_of(entry.targets, renaming) if entry.targets > 0 else entry.targets,
        )
        for entry in log
    )


@lru_cache(maxsize=1 << 16)
def mask_of(mask: int, renaming: Renaming) -> int:
    """Return a set of replicas in their new names."""
    return sum(1 << _name(replica, renaming) for replica in members(mask))


def _name(replica: int, renaming: Renaming) -> int:
    """Return the new number of a replica: its node has another one, its directory has not."""
    if replica == NOBODY:
        return NOBODY
    node = node_of(replica)
    return replica - node + renaming[node]


@lru_cache(maxsize=1 << 10)
def _back(renaming: Renaming) -> Renaming:
    return tuple(sorted(range(len(renaming)), key=renaming.__getitem__))


def _message(message: Message, renaming: Renaming) -> Message:
    sender, receiver = _name(message.sender, renaming), _name(message.receiver, renaming)
    if isinstance(message, Request):
        return message._replace(sender=sender, receiver=receiver)
    return Reply(
        message.kind,
        sender,
        receiver,
        message.request._replace(sender=receiver, receiver=sender),
        message.epoch,
        _name(message.leader, renaming),
        message.verdict,
        message.offset,
        message.last_epoch,
        _log(message.entries, renaming),
        message.watermark,
    )
