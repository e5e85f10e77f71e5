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

A node's directory is replaced while the quorum is reassigned: one id, two replicas. The leader
refuses a second voter with the same id, so the old directory has to go before the new one comes.
That is the one case in which a step makes the quorum smaller than both ends of the way, by one
voter, for as long as the new directory needs to be added.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from functools import cache
from itertools import product
from typing import NamedTuple

import pytest
from tests.model.properties.quorum.world import (
    NEW_DISK,
    OLD_DISK,
    World,
    by_ids,
    difference,
    new,
    old,
    registration,
    steps_left,
    subsets,
)

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
    return set(map(int, re.findall(r"(?:target|voter|fetching:|,) (\d+)", str(blocked))))


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


FIVE = range(1, 6)


def named(*keys: VoterKey) -> TargetVoters:
    return tuple(VoterKey(key.id, key.directory_id) for key in sorted(keys, key=lambda k: k.id))


def with_lost_disks(voter_ids: frozenset[int], lost: frozenset[int], leader_id: int) -> World:
    """Voters, of which some have come back with a new disk and follow from there."""
    others = frozenset(old(node_id) for node_id in FIVE if node_id not in voter_ids)
    return World(
        frozenset(map(old, voter_ids)),
        old(leader_id),
        observers=others | frozenset(map(new, lost)),
        silent=frozenset(map(old, lost)),
    )


def replacements() -> Iterator[tuple[World, frozenset[VoterKey]]]:
    """Return every quorum of three to five with a minority of lost disks, and where it may go."""
    for voter_ids in subsets(FIVE, least=3):
        for lost in subsets(voter_ids, least=1):
            if 2 * len(lost) >= len(voter_ids):
                continue
            for wanted_ids in subsets(FIVE, least=2):
                wanted = frozenset(
                    new(node_id) if node_id in lost else old(node_id) for node_id in wanted_ids
                )
                for leader_id in voter_ids - lost:
                    yield with_lost_disks(voter_ids, lost, leader_id), wanted


def run(world: World, wanted: frozenset[VoterKey]) -> list[World]:
    """Return the worlds up to where it stops; the voter with the lowest id is elected."""
    passed = [world]
    while after := list(passed[-1].after(passed[-1].step_to(named(*wanted)))):
        passed.append(min(after, key=lambda one: one.leader.id))
        assert passed[-1].has_fetching_majority()
        assert len(passed) < 30
    return passed


def test_every_lost_disk_is_replaced_on_the_way_to_every_target() -> None:
    seen = 0
    for world, wanted in replacements():
        passed = run(world, wanted)
        assert passed[-1].voters == wanted, f"{world}: {passed[-1].step_to(named(*wanted))}"
        ends = len(world.voters), len(wanted)
        sizes = [len(one.voters) for one in passed]
        assert min(ends) - 1 <= min(sizes)
        assert max(sizes) <= max(ends) + 1
        seen += 1
    assert seen > 1_000


def test_a_node_with_another_directory_is_another_voter() -> None:
    world = with_lost_disks(frozenset({1, 2, 3}), frozenset({3}), leader_id=1)
    wanted = named(old(1), old(2), new(3))
    step = world.step_to(wanted)
    assert step == RemoveVoter(old(3))
    (world,) = world.after(step)
    step = world.step_to(wanted)
    assert step == AddVoter(new(3), registration(3))
    (world,) = world.after(step)
    assert world.step_to(wanted) == Reached()


@pytest.mark.parametrize(
    "hindrance",
    [
        {"observers": frozenset[VoterKey]()},
        {"silent": frozenset({new(3)})},
        {"lagging": frozenset({new(3)})},
        {"strangers": frozenset({3})},
    ],
    ids=lambda hindrance: next(iter(hindrance)),
)
def test_the_old_directory_stays_until_the_new_one_can_follow(
    hindrance: dict[str, frozenset[VoterKey]],
) -> None:
    """A directory that was mistyped costs no voter."""
    world = World(frozenset(map(old, (1, 2, 3))), old(1), observers=frozenset({new(3)}))
    assert world.step_to(named(old(1), old(2), new(3))) == RemoveVoter(old(3))
    world = replace(world, **hindrance)  # type: ignore[arg-type]  # one field each
    step = world.step_to(named(old(1), old(2), new(3)))
    assert isinstance(step, Blocked)
    assert str(new(3)) in step.text


def test_a_target_that_is_down_does_not_hold_up_a_replacement() -> None:
    world = World(frozenset(map(old, (1, 2, 3))), old(1), observers=frozenset({new(3)}))
    assert world.step_to((*named(old(1), old(2), new(3)), VoterKey(4))) == RemoveVoter(old(3))


def test_the_leader_hands_over_before_its_own_directory_is_replaced() -> None:
    world = World(frozenset(map(old, (1, 2, 3))), old(1), observers=frozenset({new(1)}))
    assert world.step_to(named(new(1), old(2), old(3))) == HandOver()


def test_the_only_voter_is_not_removed_for_its_own_replacement() -> None:
    world = World(frozenset({old(1)}), old(1), observers=frozenset({new(1)}))
    step = world.step_to(named(new(1)))
    assert step == Blocked(BlockReason.MAJORITY_MISSING, f"voter {old(1)} is the only one")


def test_a_voter_that_stays_with_another_directory_goes_after_those_that_leave() -> None:
    world = World(frozenset(map(old, (1, 2, 3, 4))), old(1), observers=frozenset({new(4)}))
    assert world.step_to(named(old(1), old(2), new(4))) == RemoveVoter(old(3))


def unclear(*targets: int) -> tuple[World, Step]:
    """Return a world in which 3 has two directories, and the step to `targets` named by ids."""
    world = with_lost_disks(frozenset({1, 2, 3}), frozenset({3}), leader_id=1)
    return world, world.step_to(tuple(map(VoterKey, targets)))


def test_two_directories_of_a_voter_are_waited_for_when_nothing_else_is_left() -> None:
    _, step = unclear(1, 2, 3)
    assert isinstance(step, Blocked)
    assert step.reason is BlockReason.TARGET_AMBIGUOUS
    assert str(old(3)) in step.text
    assert str(new(3)) in step.text


def test_what_is_right_for_either_directory_is_done_meanwhile() -> None:
    """The set of voters is compared with the targets alike, whichever of the two is meant."""
    _, step = unclear(1, 2, 3, 4)
    assert isinstance(step, AddVoter)
    assert step.key == old(4)
    world, _ = unclear()
    (world,) = world.after(AddVoter(old(4), registration(4)))
    assert world.step_to(tuple(map(VoterKey, (1, 2, 3)))) == RemoveVoter(old(4))
    for meant in (old(3), new(3)):
        assert isinstance(world.step_to(named(old(1), old(2), meant)), RemoveVoter)


def test_two_directories_of_a_new_node_are_waited_for() -> None:
    world = World(frozenset(map(old, (1, 2, 3))), old(1), observers=frozenset({old(4), new(4)}))
    step = world.step_to(tuple(map(VoterKey, (1, 2, 3, 4))))
    assert isinstance(step, Blocked)
    assert step.reason is BlockReason.TARGET_AMBIGUOUS
    step = world.step_to((*map(VoterKey, (1, 2, 3)), VoterKey(4, NEW_DISK)))
    assert isinstance(step, AddVoter)
    assert step.key.directory_id == NEW_DISK != OLD_DISK
