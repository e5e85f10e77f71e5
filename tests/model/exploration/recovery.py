"""Two claims of liveness: a quorum can always go on, and target voters can be reached (KIP-642).

Every state leads on to a leader that commits. That way may be taken by those who live, where they
are a majority of the voters. Whether it is taken is a matter of timers, which a model without a
clock cannot tell; that there is one is not.

From each state with target voters a way to them is looked for, through as many further epochs as it
takes, in which nothing else goes wrong: no node crashes, nothing is lost, no node stands while a
leader is there, and no operator states other target voters. It has to end with a leader under which
everything is committed and no target voters are left. That they end only where they are reached is
for the invariants. It is demanded where every target lives, and a majority of all voters that may
count.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.model.exploration.actions import Label, first_state, state_after_prologue, steps
from tests.model.exploration.design import CORRECT, Bounds, Design
from tests.model.exploration.state import (
    LEADER,
    RESIGNED,
    Node,
    State,
    bit,
    is_majority,
    replica_of,
    targets_of,
    voters_of,
)
from tests.model.exploration.symmetry import canonical

CALM_EPOCHS = 4
"""The number of further epochs in trouble: elections, hand-overs, and more."""
ORDER = (
    *("clears the targets", "removes voter", "adds voter", "hands over", "steps down"),
    *("fetch", "snapshot", "flushes", "leads", "vote", "begin", "end"),
    *("leaves its epoch", "times out", "pre-vote", "stands", "gives up"),
)
"""The order of tries: steps, then what gets their records committed, then elections."""


@dataclass(frozen=True, slots=True)
class Explored:
    """The number of states, of those of which the claim is demanded, and one that fails it."""

    states: int
    demanded: int
    stuck: State | None


def recovery(bounds: Bounds, *, design: Design = CORRECT) -> Explored:
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
    return Explored(len(states), len(demanded), stuck)


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
    leader = _leader(state)
    return leader is not None and leader.watermark > 0


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


def reaching(bounds: Bounds, *, design: Design = CORRECT) -> Explored:
    """Explore everything, and look for a way from each state in which there are target voters."""
    calm = _calm(bounds)
    ways = Ways(design, calm)
    first = canonical(state_after_prologue(design, bounds, first_state(calm)))
    states, demanded, stuck = {first}, 0, None
    waiting = [first]
    while waiting and stuck is None:
        state = waiting.pop()
        if must_reach(state):
            demanded += 1
            stuck = None if ways.leads_to_goal(state) else state
        for _, after in steps(design, bounds, state):
            known = canonical(after)
            if known not in states:
                states.add(known)
                waiting.append(known)
    return Explored(len(states), demanded, stuck)


def _calm(bounds: Bounds) -> Bounds:
    """Return bounds in which nothing goes wrong any more, and there are epochs enough."""
    return replace(
        bounds,
        epochs=bounds.epochs + CALM_EPOCHS,
        writes=0,
        crashes=0,
        changes=0,
        snapshots=0,
        resignations=0,
        deaths=0,
        replacements=0,
        target_changes=0,
        delayed=0,
    )


class Ways:
    """The states from which a way to the end of the target voters is known."""

    def __init__(self, design: Design, bounds: Bounds) -> None:
        self._design, self._bounds = design, bounds
        self._good: set[State] = set()

    def leads_to_goal(self, state: State) -> bool:
        """Look for a way, the most promising steps first."""
        seen, way = {state}, [(state, self._following(state))]
        while way:
            at, following = way[-1]
            if at in self._good or is_settled(at):
                self._good.update(one for one, _ in way)
                return True
            after = next((one for one in following if one not in seen), None)
            if after is None:
                way.pop()
            else:
                seen.add(after)
                way.append((after, self._following(after)))
        return False

    def _following(self, state: State) -> Iterator[State]:
        """Yield what may follow in calm times, the most promising first."""
        found = [
            (label, after)
            for label, after in steps(self._design, self._bounds, state)
            if after != state and _is_calm(state, label)
        ]
        found.sort(key=lambda one: _rank(state, one[0]))
        return (canonical(after) for _, after in found)


def _is_calm(state: State, label: Label) -> bool:
    """Return whether a step belongs to times in which nothing is lost.

    Nobody stands for election then while the latest leader lives and leads.
    """
    if label[0] in {"stands", "times out"}:
        return _leader(state) is None
    return label[-1] != "reply lost"


def _rank(state: State, label: Label) -> tuple[int, ...]:
    """Return how promising a step is; of those that may stand, the longest log is."""
    match label:
        case ("stands" | "times out", int(own)):
            node = state.nodes[own]
            return ORDER.index(str(label[0])), -node.last_epoch, -node.end
        case _:
            return (ORDER.index(str(label[0])),)


def is_settled(state: State) -> bool:
    """Return whether no targets are left, under a leader that has committed all that it has."""
    leader = _leader(state)
    if leader is None or leader.watermark < leader.end:
        return False
    return not targets_of(state.history.committed)


def _leader(state: State) -> Node | None:
    """Return the leader of the highest epoch, if it lives."""
    living = _living(state)
    highest = max(node.epoch for node in living)
    return next((node for node in living if node.role == LEADER and node.epoch == highest), None)


def must_reach(state: State) -> bool:
    """Return whether there are targets, all of which live, and a majority of all voters."""
    sets = {entry.targets for node in state.nodes for entry in node.log if entry.targets > 0}
    is_wanted = targets_of(state.history.committed) or any(
        targets_of(node.log) for node in state.nodes
    )
    alive = living_replicas(state)
    return bool(is_wanted) and not any(targets & ~alive for targets in sets) and can_elect(state)
