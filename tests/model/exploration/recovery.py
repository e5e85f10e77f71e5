"""The claim that a quorum can always go on: every state leads on to a leader that commits.

That way may be taken by those who live, where they are a majority of the voters. Whether it is
taken is a matter of timers, which a model without a clock cannot tell; that there is one is not.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tests.model.exploration.actions import state_after_prologue, steps
from tests.model.exploration.design import CORRECT, Bounds, Design
from tests.model.exploration.state import (
    LEADER,
    RESIGNED,
    Node,
    State,
    bit,
    is_majority,
    replica_of,
    voters_of,
)
from tests.model.exploration.symmetry import canonical


@dataclass(frozen=True, slots=True)
class Recovery:
    """The number of states, of those that must be able to go on, and one that cannot."""

    states: int
    demanded: int
    stuck: State | None


def recovery(bounds: Bounds, *, design: Design = CORRECT) -> Recovery:
    """Explore everything, then go back from the states in which a leader has committed."""
    first = canonical(state_after_prologue(design, bounds))
    indexes, states, before = {first: 0}, [first], [list[int]()]
    waiting = deque([0])
    while waiting:
        index = waiting.popleft()
        for _, after in steps(design, bounds, states[index]):
            known = canonical(after)
            if known not in indexes:
                indexes[known] = len(states)
                states.append(known)
                before.append([])
                waiting.append(indexes[known])
            before[indexes[known]].append(index)
    can_go_on = _leading_to([i for i, state in enumerate(states) if has_leader(state)], before)
    demanded = [i for i, state in enumerate(states) if could_go_on(state, bounds)]
    stuck = next((states[i] for i in demanded if i not in can_go_on), None)
    return Recovery(len(states), len(demanded), stuck)


def _leading_to(goals: list[int], before: list[list[int]]) -> set[int]:
    """Return all states that have a way to one of the goals."""
    found, waiting = set(goals), deque(goals)
    while waiting:
        for index in before[waiting.popleft()]:
            if index not in found:
                found.add(index)
                waiting.append(index)
    return found


def _living(state: State) -> list[Node]:
    return [node for index, node in enumerate(state.nodes) if not state.dead >> index & 1]


def has_leader(state: State) -> bool:
    """Tell whether the leader of the highest epoch lives, and has committed in it."""
    living = _living(state)
    highest = max(node.epoch for node in living)
    return any(
        node.role == LEADER and node.epoch == highest and node.watermark > 0 for node in living
    )


def could_go_on(state: State, bounds: Bounds) -> bool:
    """Tell whether there is an epoch left, and a majority of all voters that may count lives."""
    living = _living(state)
    # A node that has resigned an epoch leaves it for the next one before it stands for one.
    needed = 2 if any(node.role == RESIGNED for node in living) else 1
    if max(node.epoch for node in living) + needed > bounds.epochs:
        return False
    return can_elect(state)


def can_elect(state: State) -> bool:
    """Tell whether a majority lives of all voters that may count, now or once a record commits."""
    alive, committed = living_replicas(state), state.history.committed
    logs = [node.log for node in _living(state) if node.log[: len(committed)] == committed]
    sets = {voters_of(log, state.first_voters) for log in (committed, *logs)}
    return all(is_majority(alive, voters) for voters in sets)


def living_replicas(state: State) -> int:
    """Return the replicas that live; where a disk was replaced, the one before is gone."""
    return sum(
        bit(replica_of(index, node))
        for index, node in enumerate(state.nodes)
        if not state.dead >> index & 1
    )
