"""Instance ids in consumer groups: whose they are, and the target that goes with them."""

import pytest

from kvorum.coordinator.timeline import Timeline
from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.consumer.target_assignment import SubscribingMembers
from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.consumer_group.member import ConsumerGroupMember

OF_A = {b"topic": OrderedSet([1])}
OF_B = {b"topic": OrderedSet([2])}


@pytest.fixture
def group() -> ConsumerGroup:
    """A group with the static member a, whose instance is i, and the dynamic member b."""
    group = ConsumerGroup("g", Timeline())
    for member_id, instance_id, target in (("a", "i", OF_A), ("b", None, OF_B)):
        group.set_member(ConsumerGroupMember(member_id=member_id, instance_id=instance_id))
        group.target_assignment.set(member_id, target)
    return group


def test_a_member_that_changes_its_instance_id_leaves_the_old_one_free(
    group: ConsumerGroup,
) -> None:
    group.set_member(ConsumerGroupMember(member_id="a", instance_id="j"))
    assert group.static_member("i") is None
    found = group.static_member("j")
    assert found is not None
    assert found.member_id == "a"
    group.remove_member("a")
    assert group.static_members.get("j") is None


def subscribing(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> SubscribingMembers:
    """Return the members when one of them joins again; it takes the place of its instance."""
    before = group.members.get(member_id) or ConsumerGroupMember(member_id=member_id)
    member = ConsumerGroupMember(member_id=member_id, instance_id=instance_id)
    return SubscribingMembers(group, before, member, group.static_member(instance_id))


@pytest.mark.parametrize(
    ("member_id", "instance_id", "target"),
    [
        ("b", None, OF_B),
        ("a", "i", OF_A),
        ("new", "i", OF_A),
        ("b", "i", OF_A),
        ("b", "unknown", None),
        ("new", None, None),
    ],
)
def test_the_last_target_of_a_static_member_is_that_of_its_instance(
    group: ConsumerGroup, member_id: str, instance_id: str | None, target: object
) -> None:
    assert subscribing(group, member_id, instance_id).last_target() == target


@pytest.mark.parametrize(
    ("member_id", "instance_id", "target"),
    [("b", None, OF_B), ("new", "i", OF_A), ("b", "i", OF_A), ("b", "unknown", OF_B)],
)
def test_a_new_target_is_made_from_that_of_the_replaced_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, target: object
) -> None:
    members = subscribing(group, member_id, instance_id)
    assert members.previous_target(members.member) == target


def test_a_member_whose_instance_had_no_target_keeps_its_own(group: ConsumerGroup) -> None:
    group.target_assignment.remove("a")
    members = subscribing(group, "b", "i")
    assert members.previous_target(members.member) == OF_B
