"""The claim that target voters can be reached from every state (KIP-642).

From each state that is explored a way is looked for, through as many further epochs as it takes, in
which nothing else goes wrong: no node crashes, nothing is lost, no node stands while there is a
leader, and no operator states other target voters. It has to end with a leader under which
everything is committed and no target voters are left. That they end only where they are reached is
for the invariants.

It is demanded where every target lives, and a majority of all voters that may count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.model.exploration.actions import Label, first_state, state_after_prologue, steps
from tests.model.exploration.design import CORRECT, Bounds, Design
from tests.model.exploration.recovery import can_elect, living_replicas
from tests.model.exploration.state import LEADER, Node, State, targets_of
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
class Reaching:
    """The number of states, of those from which targets must be reached, and one that fails."""

    states: int
    demanded: int
    stuck: State | None


def reaching(bounds: Bounds, *, design: Design = CORRECT) -> Reaching:
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
    return Reaching(len(states), demanded, stuck)


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
    living = [node for own, node in enumerate(state.nodes) if not state.dead >> own & 1]
    highest = max(node.epoch for node in living)
    leaders = (node for node in living if node.role == LEADER and node.epoch == highest)
    return next(leaders, None)


def must_reach(state: State) -> bool:
    """Return whether there are targets, all of which live, and a majority of all voters."""
    sets = {entry.targets for node in state.nodes for entry in node.log if entry.targets > 0}
    is_wanted = targets_of(state.history.committed) or any(
        targets_of(node.log) for node in state.nodes
    )
    alive = living_replicas(state)
    return bool(is_wanted) and not any(targets & ~alive for targets in sets) and can_elect(state)
