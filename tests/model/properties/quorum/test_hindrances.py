"""A reassignment while replicas are silent, behind or unknown, by exhaustion in small quorums.

A step is legal if KIP-642 demands its kind now, and if it could be committed:

- With at least as many new voters as leaving ones, only an addition: of a new voter that has
  registered, fetches and has caught up.
- Otherwise only a removal: of any leaving voter but the leader; where the leader alone is left, it
  hands over.
- After it a majority of the voters has to be fetching. (The leader counts: it has its own log.
  After a hand-over the former leader does not count: it is to be removed.)

Nothing else may be done, however long that takes: a target that never comes back holds up the
reassignment until another target is wanted.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from functools import cache
from itertools import product
from typing import NamedTuple

import pytest
from tests.model.properties.quorum.world import World, by_ids, difference, old, steps_left, subsets

from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Blocked,
    BlockReason,
    HandOver,
    Reached,
    RemoveVoter,
    Step,
)
from kvorum.metadata.voters import TargetVoters, VoterKey


class Target(Enum):
    """The hindrances of a target that is not a voter."""

    READY = "ready"
    LAGGING = "lagging"
    SILENT = "silent"
    UNREGISTERED = "unregistered"
    UNHEARD_OF = "unheard of"


Move = tuple[str, VoterKey | None]
HAND_OVER: Move = ("hand over", None)


class Moment(NamedTuple):
    """A world, where it is to go, what is ready for it, and the step that is taken."""

    world: World
    wanted: frozenset[VoterKey]
    ready: frozenset[VoterKey]
    step: Step

    def __str__(self) -> str:
        wanted = sorted(key.id for key in self.wanted)
        ready = sorted(key.id for key in self.ready)
        return f"{self.world} to {wanted}, of which {ready} are ready: {self.step}"

    def moves(self) -> set[Move]:
        """Return every legal step that changes something."""
        world, to_go = self.world, difference(self.world, self.wanted)
        sets: dict[Move, frozenset[VoterKey]]
        others = to_go.leaving - {world.leader}
        if len(to_go.new) >= len(to_go.leaving):
            sets = {("add", key): world.voters | {key} for key in to_go.new & self.ready}
        elif others:
            sets = {("remove", key): world.voters - {key} for key in others}
        else:
            sets = {HAND_OVER: world.voters - {world.leader}}
        return {
            move
            for move, voters in sets.items()
            if voters and replace(world, voters=voters).has_fetching_majority()
        }


def move_of(step: Step) -> Move | None:
    match step:
        case AddVoter():
            return "add", step.key
        case RemoveVoter():
            return "remove", step.key
        case HandOver():
            return HAND_OVER
        case _:
            return None


def space(nodes_count: int, kinds: tuple[Target, ...]) -> Iterator[Moment]:
    nodes = frozenset(old(node_id) for node_id in range(1, nodes_count + 1))
    for voters in subsets(nodes, least=1):
        for wanted in subsets(nodes, least=1):
            named, coming = by_ids(wanted), sorted(wanted - voters, key=lambda key: key.id)
            for fates in product(kinds, repeat=len(coming)):
                for leader in voters:
                    for silent in subsets(voters - {leader}):
                        world = World(voters, leader, silent=silent)
                        yield moment(world, wanted, dict(zip(coming, fates, strict=True)), named)


def moment(
    world: World, wanted: frozenset[VoterKey], fates: dict[VoterKey, Target], named: TargetVoters
) -> Moment:
    def those(fate: Target) -> frozenset[VoterKey]:
        return frozenset(key for key, found in fates.items() if found is fate)

    world = replace(
        world,
        observers=frozenset(fates) - those(Target.UNHEARD_OF),
        silent=world.silent | those(Target.SILENT),
        lagging=those(Target.LAGGING),
        strangers=frozenset(key.id for key in those(Target.UNREGISTERED)),
    )
    return Moment(world, wanted, those(Target.READY), world.step_to(named))


@cache
def moments() -> tuple[Moment, ...]:
    """Four nodes with every hindrance, and five of which some are simply not there."""
    return (*space(4, tuple(Target)), *space(5, (Target.READY, Target.UNHEARD_OF)))


def test_the_spaces_are_as_large_as_they_are_meant_to_be() -> None:
    assert len(moments()) > 30_000
    reasons = {one.step.reason for one in moments() if isinstance(one.step, Blocked)}
    unknown, lagging = BlockReason.TARGET_UNKNOWN, BlockReason.TARGET_LAGGING
    assert reasons == {unknown, lagging, BlockReason.MAJORITY_MISSING}


def takes_a_legal_step(one: Moment) -> bool:
    move = move_of(one.step)
    return move is None or move in one.moves()


def waits_only_where_no_step_is_legal(one: Moment) -> bool:
    return not (isinstance(one.step, Blocked) and one.moves())


def ends_at_the_target_only(one: Moment) -> bool:
    return isinstance(one.step, Reached) == (one.world.voters == one.wanted)


def leaves_a_fetching_majority(one: Moment) -> bool:
    return all(after.has_fetching_majority() for after in one.world.after(one.step))


def names_the_nodes_that_are_waited_for(one: Moment) -> bool:
    return not isinstance(one.step, Blocked) or waited_for(one) <= named_in(one.step)


@pytest.mark.parametrize(
    "claim",
    [
        takes_a_legal_step,
        waits_only_where_no_step_is_legal,
        ends_at_the_target_only,
        leaves_a_fetching_majority,
        names_the_nodes_that_are_waited_for,
    ],
    ids=lambda claim: claim.__name__,
)
def test_every_decision(claim: Callable[[Moment], bool]) -> None:
    broken = next((one for one in moments() if not claim(one)), None)
    assert broken is None, str(broken)


def waited_for(one: Moment) -> set[int]:
    """Return the ids of those that would have to change for a step to become legal."""
    world, to_go = one.world, difference(one.world, one.wanted)
    if len(to_go.new) >= len(to_go.leaving) and not to_go.new & one.ready:
        return {key.id for key in to_go.new}
    # No majority: the silent voters are the reason. One that goes itself is not waited for.
    return {key.id for key in world.silent & to_go.retained}


def named_in(blocked: Blocked) -> set[int]:
    numbers = re.findall(r"(?:target|voter|fetching:|,) (\d+)", str(blocked))
    return set(map(int, numbers))


def test_of_two_that_leave_the_silent_one_goes_first() -> None:
    for one in moments():
        leaving = difference(one.world, one.wanted).leaving - {one.world.leader}
        if isinstance(one.step, RemoveVoter) and leaving & one.world.silent:
            assert one.step.key in one.world.silent, str(one)


def test_when_the_hindrances_end_the_way_goes_on_from_there() -> None:
    """A target that is waited for comes back, and nothing has to be asked for again."""
    voters = frozenset(map(old, (1, 2, 3)))
    world = World(voters, old(1), observers=frozenset(map(old, (4, 5))), silent=frozenset({old(5)}))
    wanted = frozenset(map(old, (1, 4, 5)))
    passed: list[str] = []
    while not isinstance(step := world.step_to(by_ids(wanted)), Reached):
        passed.append(str(step))
        if isinstance(step, Blocked):
            assert step.reason is BlockReason.TARGET_UNKNOWN
            world = replace(world, silent=frozenset())
            continue
        left = steps_left(world, wanted)
        (world,) = world.after(step)
        assert steps_left(world, wanted) == left - 1
    assert [text.partition(":")[0] for text in passed] == [
        "add voter 4",
        "remove voter 3",
        "wait",
        "add voter 5",
        "remove voter 2",
    ]


@pytest.mark.parametrize("refused_count", range(5))
def test_a_target_that_is_refused_holds_up_no_other(refused_count: int) -> None:
    """The leader refuses 4 again and again, for example because nothing listens where it said."""
    world = World(
        frozenset(map(old, (1, 2, 3))),
        old(1),
        observers=frozenset(map(old, (4, 5, 6))),
        refusals={old(4): refused_count},
    )
    step = world.step_to(by_ids(map(old, (1, 4, 5, 6))))
    assert isinstance(step, AddVoter)
    assert step.key == old(5 if refused_count else 4)


def test_a_voter_stays_while_the_others_would_be_no_majority() -> None:
    world = World(frozenset(map(old, (1, 2, 3))), old(1), silent=frozenset({old(3)}))
    text = f"without voter {old(2)} no majority would be fetching: {old(3)} does not"
    assert world.step_to(by_ids(map(old, (1, 3)))) == Blocked(BlockReason.MAJORITY_MISSING, text)
    assert world.step_to(by_ids(map(old, (1, 2)))) == RemoveVoter(old(3))


def test_a_voter_is_added_only_where_that_makes_a_majority() -> None:
    """One of two is no majority, and two of three are; one of three is none, nor two of four."""
    world = World(
        frozenset(map(old, (1, 2))),
        old(1),
        observers=frozenset({old(4)}),
        silent=frozenset(map(old, (2, 3))),
    )
    assert isinstance(world.step_to(by_ids(map(old, (1, 2, 4)))), AddVoter)
    world = replace(world, voters=world.voters | {old(3)})
    step = world.step_to(by_ids(map(old, (1, 2, 3, 4))))
    assert isinstance(step, Blocked)
    assert step.reason is BlockReason.MAJORITY_MISSING
    assert named_in(step) == {2, 3, 4}
