"""The quorum's design holds in every state within the bounds; every mistake in it shows.

KVORUM_MODEL_LARGE=1 in the environment explores the large bounds too, which takes long.
"""

import os
from collections.abc import Callable

import pytest
from tests.model.exploration.explore import Explorer
from tests.model.exploration.invariants import STATE_INVARIANTS, STEP_INVARIANTS
from tests.model.exploration.recovery import recovery
from tests.model.exploration.topics import DEAD_ENDS, GOING_ON, LARGE, MISTAKES, QUICK

TOPICS = {**QUICK, **LARGE} if os.environ.get("KVORUM_MODEL_LARGE") else {**QUICK}
STEP_KINDS = {
    *("times out", "gives up", "stands", "leads", "resigns", "leaves its epoch", "steps down"),
    *("pre-vote", "vote", "begin", "end", "fetch", "snapshot"),
    *("writes", "flushes", "changes voters to", "takes a snapshot", "crashes"),
    *("has its disk replaced", "dies"),
    *("wants", "adds voter", "removes voter", "hands over", "clears the targets"),
    *("sends", "lost", "late reply to"),
}


@pytest.mark.slow
def test_the_correct_design_holds_in_every_state(
    record_property: Callable[[str, object], None],
) -> None:
    taken: set[str] = set()
    for name, bounds in TOPICS.items():
        found = Explorer(bounds).run()
        assert found.broken is None, f"{name}: {found.broken}"
        assert found.is_exhausted
        assert found.states > 500
        record_property(name, f"{found.states} states, {found.transitions} transitions")
        taken |= found.actions
    assert taken == STEP_KINDS, "a kind of step that no exploration takes shows nothing"


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_the_design_shows(name: str) -> None:
    mistake = MISTAKES[name]
    for invariant in mistake.breaks:
        explorer = Explorer(mistake.bounds, design=mistake.design, invariants=[invariant])
        found = explorer.run()
        assert found.broken is not None, f"{invariant} holds in {found.states} states"
        assert found.broken.invariant == invariant
        assert len(found.broken.way) > 1


def test_every_invariant_bites() -> None:
    broken = {invariant for mistake in MISTAKES.values() for invariant in mistake.breaks}
    assert broken == {*STATE_INVARIANTS, *STEP_INVARIANTS}


@pytest.mark.slow
@pytest.mark.parametrize("name", GOING_ON)
def test_a_quorum_can_go_on_from_every_state(name: str) -> None:
    found = recovery(GOING_ON[name])
    # Not for want of states to look at.
    assert found.demanded > 20
    assert found.stuck is None


@pytest.mark.parametrize("name", DEAD_ENDS)
def test_a_dead_end_shows(name: str) -> None:
    design, topic = DEAD_ENDS[name]
    assert recovery(GOING_ON[topic], design=design).stuck is not None
