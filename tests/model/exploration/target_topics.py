"""The topics that are explored of target voters (KIP-642), and the mistakes in them."""

from collections.abc import Mapping
from dataclasses import replace

from tests.model.exploration.design import Bounds, Design, Mistake

_TARGETS = Bounds(voters=2, is_led=True, pre_votes=False, syncs_at_once=True, target_changes=1)
_OF_TWO = replace(_TARGETS, nodes=2)
_OF_THREE = replace(_TARGETS, voters=3)
_UNFLUSHED = replace(_OF_TWO, syncs_at_once=False, crashes=1)
_TO_ANOTHER_TWO = "wants 0 6"
"""From the voters 0 and 1 to 1 and 2: one comes, and the leader has to go."""

QUICK: Mapping[str, Bounds] = {
    "target voters, of two voters and any node": _TARGETS,
    "target voters, replaced and cancelled": replace(
        _TARGETS, epochs=1, target_changes=2, prologue=(_TO_ANOTHER_TWO,)
    ),
    "target voters, replaced and cancelled under two leaders": replace(_OF_TWO, target_changes=2),
    "target voters, and changes by hand": replace(_TARGETS, epochs=1, changes=1),
    "target voters, and unflushed tails lost in a crash": _UNFLUSHED,
    "target voters, a message late": replace(_OF_TWO, delayed=1),
    "target voters that a snapshot holds": replace(_OF_TWO, snapshots=1),
    "target voters, and one node dies": replace(_OF_THREE, epochs=1, deaths=1),
    "target voters for a replaced disk": replace(
        _OF_THREE, epochs=1, replacements=1, names_directories=True
    ),
}
"""Exhausted in every test run."""

LARGE: Mapping[str, Bounds] = {
    "target voters, of three voters and any node": _OF_THREE,
    "target voters, of three voters, and one node dies": replace(
        _OF_THREE, deaths=1, prologue=(_TO_ANOTHER_TWO,)
    ),
    "target voters, of two voters and any of four nodes": replace(_TARGETS, nodes=4, epochs=1),
    "target voters, of three voters and any of four nodes": replace(_OF_THREE, nodes=4, epochs=1),
    "target voters for any nodes, replaced and cancelled": replace(
        _TARGETS, epochs=1, target_changes=2
    ),
    "target voters, replaced and cancelled under three leaders": replace(
        _OF_TWO, epochs=3, target_changes=2
    ),
    "target voters, replaced and cancelled, and a crash": replace(_UNFLUSHED, target_changes=2),
    "target voters, a crash, and three leaders": replace(_UNFLUSHED, epochs=3),
    "target voters, a crash, and three nodes": replace(
        _UNFLUSHED, nodes=3, prologue=(_TO_ANOTHER_TWO,)
    ),
    "target voters, and elections with pre-votes": replace(
        _TARGETS, pre_votes=True, prologue=(_TO_ANOTHER_TWO,)
    ),
}
"""Exhausted on demand; together they take some minutes."""

MISTAKES: Mapping[str, Mistake] = {
    "a step towards the target voters does not wait for the one before": Mistake(
        Design(changes_voters_twice=True),
        _TARGETS,
        ("steps_wait_for_the_one_before", "overlapping_majorities"),
    ),
    "a leader acts on target voters that are not committed": Mistake(
        Design(acts_on_uncommitted_targets=True), _OF_TWO, ("steps_follow_the_targets",)
    ),
    "a new leader goes on with the target voters that it knew, before it commits": Mistake(
        Design(acts_before_active=True, changes_voters_before_own_commit=True),
        _TARGETS,
        ("steps_follow_the_targets", "overlapping_majorities"),
    ),
    "a leader goes on with target voters that were replaced": Mistake(
        Design(keeps_first_targets=True),
        replace(_OF_TWO, target_changes=2),
        ("steps_follow_the_targets",),
    ),
    "target voters are cleared that have replaced those that were reached": Mistake(
        Design(clears_replaced_targets=True),
        replace(_OF_TWO, target_changes=2),
        ("targets_end_when_reached",),
    ),
    "a voter goes although no majority of the rest fetches": Mistake(
        Design(takes_silent_for_fetching=True), _OF_THREE, ("majority_fetches_after_step",)
    ),
    "a target comes that has not caught up": Mistake(
        Design(takes_any_for_caught_up=True), _TARGETS, ("added_voter_has_caught_up",)
    ),
    "a leader goes before the others that have to go": Mistake(
        Design(forgets_who_leads=True), _OF_THREE, ("leader_leaves_last",)
    ),
    "a change by hand leads away from the target voters": Mistake(
        Design(admits_any_change=True),
        replace(_OF_TWO, changes=1),
        ("changes_by_hand_follow_the_targets",),
    ),
}

REACHED: Mapping[str, Bounds] = {
    name: QUICK[name]
    for name in (
        "target voters, replaced and cancelled under two leaders",
        "target voters, and unflushed tails lost in a crash",
        "target voters, and one node dies",
        "target voters for a replaced disk",
    )
} | {"target voters, of two voters and any node": replace(_TARGETS, epochs=1)}
"""Configurations in which target voters must be reached from every state."""

REACHED_LARGE: Mapping[str, Bounds] = {
    "target voters, replaced and cancelled": QUICK["target voters, replaced and cancelled"],
    "target voters, of three voters for one of them and another": replace(
        _OF_THREE, nodes=4, epochs=1, prologue=("wants 0 12",)
    ),
}
"""The same, on demand."""

DEAD_ENDS: Mapping[str, tuple[Design, Bounds]] = {
    "a leader that has to go leads on": (Design(never_hands_over=True), _OF_TWO),
    "a new leader knows its own target voters only": (
        Design(forgets_targets_of_others=True),
        _OF_TWO,
    ),
}
"""Mistakes by which target voters are never reached, and where."""
