"""Noting what happened, which no single node can know."""

from tests.model.exploration.state import (
    LEADER,
    NOBODY,
    History,
    Node,
    Request,
    State,
    bit,
    node_of,
    replica_of,
    voters_of,
    with_node,
)


def noted(state: State, index: int, after: Node) -> State:
    """Return the state in which a node has become another, with the history of that."""
    before = state.nodes[index]
    if after == before:
        return state
    history = state.history
    if after.voted not in {NOBODY, before.voted if after.epoch == before.epoch else NOBODY}:
        history = _with_vote(history, index, after)
    if after.role == LEADER and before.role != LEADER:
        leaders = list(history.leaders)
        leaders[after.epoch] |= bit(replica_of(index, after))
        history = history._replace(leaders=tuple(leaders))
    if after.role == LEADER and after.watermark > len(history.committed):
        history = history._replace(
            committed=after.log[: after.watermark],
            counted_by=voters_of(after.log, state.first_voters),
        )
    return with_node(state, index, after)._replace(history=history)


def without_stale_replies(before: State, after: State) -> State:
    """Return a state in which no node awaits a reply that has moved since it asked."""
    for index, (one, other) in enumerate(zip(before.nodes, after.nodes, strict=True)):
        if (one.role, one.epoch) != (other.role, other.epoch):
            after = cut_off(after, index)
    return after


def cut_off(state: State, index: int) -> State:
    """Return the state in which a node awaits no reply to what it asked before.

    Its requests may still arrive. A reply that was given to what the node was before must not
    reach what it is now.
    """
    network = [
        one._replace(is_awaited=False)
        if isinstance(one, Request) and node_of(one.sender) == index
        else one
        for one in state.network
        if isinstance(one, Request) or node_of(one.receiver) != index
    ]
    return state._replace(network=tuple(sorted(network)))


def forgotten_votes(history: History, index: int) -> History:
    """Return a history without a node's votes: with another directory it has not voted yet."""
    votes = tuple((*row[:index], 0, *row[index + 1 :]) for row in history.votes)
    return history._replace(votes=votes)


def _with_vote(history: History, index: int, node: Node) -> History:
    votes = [list(of_epoch) for of_epoch in history.votes]
    votes[node.epoch][index] |= bit(node.voted)
    return history._replace(votes=tuple(map(tuple, votes)))
