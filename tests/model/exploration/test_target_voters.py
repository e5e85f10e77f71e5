"""Target voters can be reached from every state, and the real rules lead there.

KVORUM_MODEL_LARGE=1 in the environment looks for ways from the large bounds too, which takes long.
"""

import os
from collections.abc import Collection, Generator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from tests.model.exploration.explore import Explorer
from tests.model.exploration.recovery import reaching
from tests.model.exploration.target_steps import forget_decisions
from tests.model.exploration.target_topics import DEAD_ENDS, REACHED, REACHED_LARGE
from tests.model.exploration.topics import QUICK

from kvorum.controller.quorum_description import QuorumDescription
from kvorum.controller.quorum_reassignment import next_step
from kvorum.controller.quorum_reassignment.next_step import Circumstances, RemoveVoter, Step
from kvorum.controller.quorum_reassignment.pursuit import CatchUp
from kvorum.metadata.voters import VoterKey
from kvorum.node.raft.translation import admission

SPACES = {**REACHED, **REACHED_LARGE} if os.environ.get("KVORUM_MODEL_LARGE") else {**REACHED}


@pytest.mark.slow
@pytest.mark.parametrize("name", SPACES)
def test_target_voters_can_be_reached_from_every_state(name: str) -> None:
    found = reaching(SPACES[name])
    # Not for want of states to look at.
    assert found.demanded > 500
    assert found.stuck is None


@pytest.mark.parametrize("name", DEAD_ENDS)
def test_target_voters_that_are_never_reached_show(name: str) -> None:
    design, bounds = DEAD_ENDS[name]
    assert reaching(bounds, design=design).stuck is not None


def always(*_: object) -> bool:
    return True


def removes_the_lowest(
    leaving: tuple[VoterKey, ...],
    quorum: QuorumDescription,
    circumstances: Circumstances,
    *,
    coming_ids: Collection[int] = (),
) -> Step:
    return RemoveVoter(min(leaving))


DEFECTS: dict[str, tuple[object, str, object, str]] = {
    "a removal without a majority that fetches": (
        next_step,
        "_has_fetching_majority",
        always,
        "majority_fetches_after_step",
    ),
    "a leader that is removed like any other": (
        *(next_step, "_removal", removes_the_lowest),
        "leader_leaves_last",
    ),
    "a target that is taken as it is": (
        CatchUp,
        "has_caught_up",
        always,
        "added_voter_has_caught_up",
    ),
    "any voter that is added by hand": (
        admission,
        "_are_wanted",
        always,
        "changes_by_hand_follow_the_targets",
    ),
}
"""Defects of the decisions themselves, and the invariants that they break."""


@contextmanager
def other_decisions() -> Generator[None]:
    forget_decisions()
    yield
    forget_decisions()


@pytest.mark.parametrize("name", DEFECTS)
def test_a_decision_with_a_defect_is_found_out(name: str) -> None:
    owner, attribute, defective, invariant = DEFECTS[name]
    with patch.object(owner, attribute, defective), other_decisions():
        found = Explorer(QUICK["target voters, and changes by hand"], invariants=[invariant]).run()
        assert found.broken is not None, f"{invariant} holds in {found.states} states"
