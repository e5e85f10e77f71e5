"""Noting what happened, which no single node can know."""

from __future__ import annotations

from tests.model.state import LEADER, NOBODY, History, Node, State, bit, voters_of, with_node


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
        leaders[after.epoch] |= bit(index)
        history = history._replace(leaders=tuple(leaders))
    if after.role == LEADER and after.watermark > len(history.committed):
        history = history._replace(
            committed=after.log[: after.watermark],
            counted_by=voters_of(after.log, state.first_voters),
        )
    return with_node(state, index, after)._replace(history=history)


def _with_vote(history: History, index: int, node: Node) -> History:
    votes = [list(of_epoch) for of_epoch in history.votes]
    votes[node.epoch][index] |= bit(node.voted)
    return history._replace(votes=tuple(map(tuple, votes)))
