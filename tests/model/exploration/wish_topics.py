"""The topics that are explored of the wish for other voters (KIP-642), and the mistakes in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tests.model.exploration.design import Bounds, Design, Mistake

_WISH = Bounds(voters=2, is_led=True, pre_votes=False, syncs_at_once=True, wishes=1)
_OF_TWO = replace(_WISH, nodes=2)
_OF_THREE = replace(_WISH, voters=3)
_UNFLUSHED = replace(_OF_TWO, syncs_at_once=False, crashes=1)
_TO_ANOTHER_TWO = "wishes for 0 6"
"""From the voters 0 and 1 to 1 and 2: one comes, and the leader has to go."""

QUICK: Mapping[str, Bounds] = MappingProxyType(
    {
        "a wish, of two voters and any node": _WISH,
        "a wish, replaced and cancelled": replace(
            _WISH, epochs=1, wishes=2, prologue=(_TO_ANOTHER_TWO,)
        ),
        "wishes, replaced and cancelled under two leaders": replace(_OF_TWO, wishes=2),
        "a wish, and changes by hand": replace(_WISH, epochs=1, changes=1),
        "a wish, and unflushed tails lost in a crash": _UNFLUSHED,
        "a wish, a message late": replace(_OF_TWO, delayed=1),
        "a wish that a snapshot holds": replace(_OF_TWO, snapshots=1),
        "a wish, and one node dies": replace(_OF_THREE, epochs=1, deaths=1),
        "a wish for a replaced disk": replace(
            _OF_THREE, epochs=1, replacements=1, names_directories=True
        ),
    }
)
"""Exhausted in every test run."""

LARGE: Mapping[str, Bounds] = MappingProxyType(
    {
        "a wish, of three voters and any node": _OF_THREE,
        "a wish, of three voters, and one node dies": replace(
            _OF_THREE, deaths=1, prologue=(_TO_ANOTHER_TWO,)
        ),
        "a wish, of two voters and any of four nodes": replace(_WISH, nodes=4, epochs=1),
        "a wish, of three voters and any of four nodes": replace(_OF_THREE, nodes=4, epochs=1),
        "wishes for any nodes, replaced and cancelled": replace(_WISH, epochs=1, wishes=2),
        "wishes, replaced and cancelled under three leaders": replace(_OF_TWO, epochs=3, wishes=2),
        "wishes, replaced and cancelled, and a crash": replace(_UNFLUSHED, wishes=2),
        "a wish, a crash, and three leaders": replace(_UNFLUSHED, epochs=3),
        "a wish, a crash, and three nodes": replace(
            _UNFLUSHED, nodes=3, prologue=(_TO_ANOTHER_TWO,)
        ),
        "a wish, and elections with pre-votes": replace(
            _WISH, pre_votes=True, prologue=(_TO_ANOTHER_TWO,)
        ),
    }
)
"""Exhausted on demand; together they take some minutes."""

MISTAKES: Mapping[str, Mistake] = MappingProxyType(
    {
        "a step towards the wish does not wait for the one before": Mistake(
            Design(changes_voters_twice=True),
            _WISH,
            ("steps_wait_for_the_one_before", "overlapping_majorities"),
        ),
        "a leader acts on a wish that is not committed": Mistake(
            Design(acts_on_uncommitted_wish=True), _OF_TWO, ("steps_follow_the_wish",)
        ),
        "a new leader goes on with the wish that it knew, before it commits": Mistake(
            Design(acts_before_active=True, changes_voters_before_own_commit=True),
            _WISH,
            ("steps_follow_the_wish", "overlapping_majorities"),
        ),
        "a leader goes on with a wish that was replaced": Mistake(
            Design(keeps_first_wish=True), replace(_OF_TWO, wishes=2), ("steps_follow_the_wish",)
        ),
        "a wish is cleared that has replaced the one that was reached": Mistake(
            Design(clears_replaced_wish=True),
            replace(_OF_TWO, wishes=2),
            ("wish_ends_when_reached",),
        ),
        "a voter goes although no majority of the rest fetches": Mistake(
            Design(takes_silent_for_fetching=True), _OF_THREE, ("majority_fetches_after_step",)
        ),
        "a target comes that has not caught up": Mistake(
            Design(takes_any_for_caught_up=True), _WISH, ("added_voter_has_caught_up",)
        ),
        "a leader goes before the others that have to go": Mistake(
            Design(forgets_who_leads=True), _OF_THREE, ("leader_leaves_last",)
        ),
        "a change by hand leads away from the wish": Mistake(
            Design(admits_any_change=True),
            replace(_OF_TWO, changes=1),
            ("changes_by_hand_follow_the_wish",),
        ),
    }
)

REACHED: Mapping[str, Bounds] = MappingProxyType(
    {
        name: QUICK[name]
        for name in (
            "wishes, replaced and cancelled under two leaders",
            "a wish, and unflushed tails lost in a crash",
            "a wish, and one node dies",
            "a wish for a replaced disk",
        )
    }
    | {"a wish, of two voters and any node": replace(_WISH, epochs=1)}
)
"""Configurations in which a wish must be reached from every state."""

REACHED_LARGE: Mapping[str, Bounds] = MappingProxyType(
    {
        "a wish, replaced and cancelled": QUICK["a wish, replaced and cancelled"],
        "a wish, of three voters for one of them and another": replace(
            _OF_THREE, nodes=4, epochs=1, prologue=("wishes for 0 12",)
        ),
    }
)
"""The same, on demand."""

DEAD_ENDS: Mapping[str, tuple[Design, Bounds]] = MappingProxyType(
    {
        "a leader that has to go leads on": (Design(never_hands_over=True), _OF_TWO),
        "a new leader knows its own wishes only": (Design(forgets_wish_of_others=True), _OF_TWO),
    }
)
"""Mistakes by which a wish is never reached, and where."""
