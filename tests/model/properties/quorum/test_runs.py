"""A reassignment of a healthy quorum, by exhaustion: every set of voters to every other one.

Seven nodes; every set of voters, every leader, every target. That is every state that a run can
pass through, so what holds for the one step from each of them holds for all runs, also for those
whose target is replaced on the way:

- The steps that are left (one for each new voter and each leaving one, and one more where the
  leader leaves) become one less with each step, whichever voter a hand-over elects.
- With `s` voters at first and `t` targets, there are never fewer than `min(s, t)` voters, and never
  more than `max(s, t)`; where some come and some go, `max(s, t + 1)`.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import pytest
from tests.model.properties.quorum.world import World, by_ids, difference, old, steps_left, subsets

from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    HandOver,
    Reached,
    RemoveVoter,
    Step,
)
from kvorum.metadata.voters import VoterKey

NODES = frozenset(old(node_id) for node_id in range(1, 8))


class Moment(NamedTuple):
    """A world, where it is to go, and the step that is taken there."""

    world: World
    wanted: frozenset[VoterKey]
    step: Step

    def __str__(self) -> str:
        return f"{self.world} to {sorted(key.id for key in self.wanted)}: {self.step}"


def worlds_of(nodes: frozenset[VoterKey]) -> Iterator[World]:
    for voters in subsets(nodes, least=1):
        for leader in voters:
            yield World(voters, leader, observers=nodes - voters)


@cache
def moments() -> tuple[Moment, ...]:
    targets = [(wanted, by_ids(wanted)) for wanted in subsets(NODES, least=1)]
    return tuple(
        Moment(world, wanted, world.step_to(named))
        for world in worlds_of(NODES)
        for wanted, named in targets
    )


def comes_nearer(moment: Moment) -> bool:
    left = steps_left(moment.world, moment.wanted)
    after = [steps_left(world, moment.wanted) for world in moment.world.after(moment.step)]
    return set(after) == ({left - 1} if left else set())


def ends_at_the_target_only(moment: Moment) -> bool:
    return (moment.world.voters == moment.wanted) == isinstance(moment.step, Reached)


def adds_while_no_more_leave_than_come(moment: Moment) -> bool:
    to_go = difference(moment.world, moment.wanted)
    if isinstance(moment.step, AddVoter):
        return moment.step.key in to_go.new and len(to_go.new) >= len(to_go.leaving)
    return isinstance(moment.step, Reached) or len(to_go.new) < len(to_go.leaving)


def removes_no_leader_and_no_wanted_voter(moment: Moment) -> bool:
    if not isinstance(moment.step, RemoveVoter):
        return True
    return moment.step.key not in moment.wanted | {moment.world.leader}


def hands_over_when_only_the_leader_leaves(moment: Moment) -> bool:
    to_go = difference(moment.world, moment.wanted)
    is_last = to_go.leaving == frozenset({moment.world.leader}) and not to_go.new
    return isinstance(moment.step, HandOver) == is_last


def size_max(world: World, wanted: frozenset[VoterKey]) -> int:
    to_go = difference(world, wanted)
    return max(len(world.voters), len(wanted) + bool(to_go.new and to_go.leaving))


def stays_within_the_sizes(moment: Moment) -> bool:
    world, wanted = moment.world, moment.wanted
    least = min(len(world.voters), len(wanted))
    return all(
        least <= len(after.voters) and size_max(after, wanted) <= size_max(world, wanted)
        for after in world.after(moment.step)
    )


@pytest.mark.parametrize(
    "claim",
    [
        comes_nearer,
        ends_at_the_target_only,
        adds_while_no_more_leave_than_come,
        removes_no_leader_and_no_wanted_voter,
        hands_over_when_only_the_leader_leaves,
        stays_within_the_sizes,
    ],
    ids=lambda claim: claim.__name__,
)
def test_every_step(claim: Callable[[Moment], bool]) -> None:
    assert len(moments()) == 448 * 127
    broken = next((moment for moment in moments() if not claim(moment)), None)
    assert broken is None, str(broken)


def runs(world: World, wanted: frozenset[VoterKey]) -> Iterator[list[World]]:
    """Return the worlds of every run, with every leader on the way."""
    step = world.step_to(by_ids(wanted))
    if isinstance(step, Reached):
        yield [world]
    for after in world.after(step):
        for rest in runs(after, wanted):
            yield [world, *rest]


FIVE = frozenset(old(node_id) for node_id in range(1, 6))


def test_a_run_ends_at_the_target_after_as_many_steps_as_have_to_be() -> None:
    seen = 0
    for world in worlds_of(FIVE):
        for wanted in subsets(FIVE, least=1):
            for run in runs(world, wanted):
                seen += 1
                sizes = [len(passed.voters) for passed in run]
                assert run[-1].voters == wanted
                assert len(run) - 1 == steps_left(world, wanted)
                assert min(sizes) == min(sizes[0], sizes[-1])
                assert max(sizes) == size_max(world, wanted)
    assert seen > 80 * 31


def test_the_last_target_voters_count_wherever_they_come() -> None:
    """Another target replaces the first at every point of every run; going back is one of them."""
    four = frozenset(old(node_id) for node_id in range(1, 5))
    starts = list(worlds_of(four))
    for world in starts:
        for first in subsets(four, least=1):
            passed = {point for run in runs(world, first) for point in run}
            for last in {world.voters, *subsets(four, least=3)}:
                for point in passed:
                    assert {run[-1].voters for run in runs(point, last)} == {last}


def test_a_cancelled_reassignment_leaves_the_voters_as_they_are() -> None:
    """To want the present voters is to want no step."""
    world = World(frozenset(map(old, (1, 2, 3))), old(1), observers=frozenset(map(old, (4, 5, 6))))
    for run in runs(world, frozenset(map(old, (4, 5, 6)))):
        for point in run:
            assert isinstance(point.step_to(by_ids(point.voters)), Reached)


def test_the_example_of_the_proposal() -> None:
    world = World(frozenset(map(old, (1, 2, 3))), old(1), observers=frozenset(map(old, (4, 5, 6))))
    wanted = by_ids(map(old, (4, 5, 6)))
    steps: list[str] = []
    while not isinstance(step := world.step_to(wanted), Reached):
        steps.append(str(step).partition(":")[0])
        world = min(world.after(step), key=lambda after: after.leader.id)
    assert steps == [
        "add voter 4",
        "remove voter 3",
        "add voter 5",
        "remove voter 2",
        "add voter 6",
        "hand over the leadership",
        "remove voter 1",
    ]
    assert world.voters == frozenset(map(old, (4, 5, 6)))
