"""A node's directory is replaced while the quorum is reassigned: one id, two replicas.

The leader refuses a second voter with the same id, so the old directory has to go before the new
one comes. That is the one case in which a step makes the quorum smaller than both ends of the way,
by one voter, for as long as the new directory needs to be added.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.model.properties.quorum.world import (
    NEW_DISK,
    OLD_DISK,
    World,
    new,
    old,
    registration,
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
    step = world.step_to((*named(old(1), old(2), new(3)), VoterKey(4)))
    assert step == RemoveVoter(old(3))


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
