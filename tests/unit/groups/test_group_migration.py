"""Groups that change between the classic and the consumer protocol while they have members."""

from dataclasses import replace

import pytest
from tests.unit.groups.coordinator import GROUP, REBALANCE_MS, SESSION_MS
from tests.unit.groups.mixed_group import TOPIC_IDS, MixedGroup, assignment, owned_by, subscription

from kvorum.groups.classic_group.consumer_protocol import assignment_of, embedded_version
from kvorum.groups.classic_group.group import ClassicGroupState
from kvorum.groups.migration_policy import MigrationPolicy
from kvorum.groups.modern_group.member_state import MemberState
from kvorum.groups.records import group_metadata_tombstone
from kvorum.groups.settings import ConsumerGroupSettings
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.offset_fetch import OffsetFetchRequestGroup

CONSUMER_SESSION_MS = ConsumerGroupSettings().session_timeout_ms
BOTH = assignment({"one": [0, 1]})
FIRST, SECOND = assignment({"one": [0]}), assignment({"one": [1]})


@pytest.fixture
def group() -> MixedGroup:
    return MixedGroup()


# Upgrade.


def test_a_consumer_makes_a_consumer_group_of_a_classic_one(group: MixedGroup) -> None:
    """Each classic member stays as it is: with what it owns, at the generation as its epoch."""
    classic, *_ = group.stable_classic_group(BOTH)
    joined = group.consume("consumer", "one")
    assert joined.member_epoch == 2
    member = group.member(classic)
    assert member.uses_classic_protocol
    assert member.member_epoch == 1
    assert owned_by(member) == {"one": [0, 1]}
    assert owned_by(group.member("consumer")) == {}


def test_the_records_of_an_upgrade_make_the_same_group(group: MixedGroup) -> None:
    classic, *_ = group.stable_classic_group(BOTH)
    group.consume("consumer", "one")
    before = group.member(classic), group.member("consumer"), group.consumer_group.epochs()
    group.reload()
    assert (group.member(classic), group.member("consumer")) == before[:2]
    assert group.consumer_group.epochs() == before[2]


def test_an_upgrade_has_members_that_wait_join_again(group: MixedGroup) -> None:
    leader, follower = group.stable_classic_group(FIRST, SECOND)
    waiting = group.join_as_classic(leader, "one", "two")
    group.consume("consumer", "one")
    assert group.join_error(waiting) is ErrorCode.REBALANCE_IN_PROGRESS
    assert group.heartbeat(follower, generation=1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_failed_upgrade_leaves_a_classic_group(group: MixedGroup) -> None:
    classic, *_ = group.stable_classic_group(BOTH)
    group.consume("consumer", "one", error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert group.group.is_in(ClassicGroupState.STABLE)
    assert group.heartbeat(classic) is ErrorCode.NONE


@pytest.mark.parametrize("policy", [MigrationPolicy.DOWNGRADE, MigrationPolicy.DISABLED])
def test_a_policy_may_forbid_upgrades(policy: MigrationPolicy) -> None:
    group = MixedGroup(policy)
    group.stable_classic_group(BOTH)
    error = group.refusal("consumer", "one")
    assert error.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert str(error.message).endswith("because online upgrade is disabled.")
    assert group.group.is_in(ClassicGroupState.STABLE)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xff", "because the embedded consumer protocol is malformed."),
        (assignment({}, user_data=b"custom"), "because an unsupported custom assignor is in use."),
    ],
)
def test_a_group_is_not_upgraded_whose_assignments_would_be_lost(
    group: MixedGroup, data: bytes, reason: str
) -> None:
    group.stable_classic_group(data)
    error = group.refusal("consumer", "one")
    assert error.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert reason in str(error.message)


def test_a_group_of_another_protocol_type_is_not_upgraded(group: MixedGroup) -> None:
    group.protocol_type = "connect"
    group.stable_classic_group(BOTH)
    assert group.refusal("consumer", "one").code is ErrorCode.GROUP_ID_NOT_FOUND


# Classic members in a consumer group.


def test_a_classic_member_never_leads_a_consumer_group(group: MixedGroup) -> None:
    """It hears of no leader and of no members, and its own first protocol is the group's."""
    group.consume("consumer", "one")
    response = group.join_response(group.join_as_classic("classic", "one"))
    assert response.leader == ""
    assert response.members == []
    assert response.protocol_name == "range"
    assert response.generation_id == group.member("classic").member_epoch == 3


def test_a_member_id_for_a_consumer_group_is_only_an_offer(group: MixedGroup) -> None:
    group.consume("consumer", "one")
    offered = group.join_response(group.join_as_classic("", "one"))
    assert offered.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert len(offered.member_id) == 22
    assert group.consumer_group.member_count == 1


def test_a_classic_member_takes_its_assignment_in_the_version_of_its_subscription(
    group: MixedGroup,
) -> None:
    group.consume("consumer", "two")
    group.join("classic", subscription=subscription(["one"], version=0))
    answer = group.sync_response(group.sync("classic", generation=3))
    assert embedded_version(answer.assignment) == 0
    found = assignment_of(answer.assignment).assigned_partitions
    assert {one.topic: one.partitions for one in found} == {"one": [0, 1]}


def test_a_classic_member_gives_up_partitions_by_joining_again(group: MixedGroup) -> None:
    """Each answer that a rebalance is in progress leads it one step further."""
    group.consume("consumer", "two")
    group.join_as_classic("classic", "one")
    group.consume("consumer", "one", epoch=2)
    assert group.heartbeat("classic", generation=3) is ErrorCode.REBALANCE_IN_PROGRESS
    group.join_as_classic("classic", "one", owned={"one": [0, 1]})
    member = group.member("classic")
    assert member.member_epoch == 3
    assert f"rebalance-timeout-{GROUP}-classic" not in group.timers
    kept = owned_by(member)
    assert len(kept["one"]) == 1
    assert group.error_of_sync("classic", 3) is ErrorCode.NONE
    assert group.heartbeat("classic", generation=3) is ErrorCode.REBALANCE_IN_PROGRESS
    group.join_as_classic("classic", "one", owned=kept)
    assert group.heartbeat("classic", generation=4) is ErrorCode.NONE
    assert owned_by(group.member("classic")) == kept


def test_a_classic_member_gives_up_a_topic_before_there_is_a_new_target() -> None:
    group = MixedGroup(assignment_interval_ms=1_000)
    group.advance(1)
    group.consume("consumer", "two")
    group.advance(1_000)
    group.join_as_classic("classic", "one")
    epoch = group.member("classic").member_epoch
    group.join_as_classic("classic", "two", owned={"one": [0, 1]})
    assert group.heartbeat("classic", generation=epoch) is ErrorCode.REBALANCE_IN_PROGRESS
    assert group.member("classic").state is MemberState.UNREVOKED_PARTITIONS
    group.join_as_classic("classic", "two")
    assert group.heartbeat("classic", generation=epoch) is ErrorCode.NONE


def test_a_member_awaits_only_partitions_that_it_does_not_own(group: MixedGroup) -> None:
    group.consume("consumer", "one")
    found = group.consumer_group
    topic_id = TOPIC_IDS["one"]
    member = replace(group.member("consumer"), state=MemberState.UNRELEASED_PARTITIONS)
    assert not found.awaits_release(member)
    assert found.awaits_release(replace(member, assigned={topic_id: {0: 2}}))


def test_a_classic_member_has_a_rebalance_timeout_to_join_from_the_first_call_on(
    group: MixedGroup,
) -> None:
    group.consume("consumer", "two")
    group.join_as_classic("classic", "one")
    group.sync("classic", generation=3)
    group.consume("consumer", "one", epoch=2)
    called_ms = group.now
    for _ in range(3):
        assert group.heartbeat("classic", generation=3) is ErrorCode.REBALANCE_IN_PROGRESS
        group.advance(SESSION_MS - 1)
    assert group.timers[f"join-{GROUP}-classic"][0] == called_ms + REBALANCE_MS
    group.heartbeat("classic", generation=3)
    group.consume("consumer", epoch=group.member("consumer").member_epoch)
    group.advance(called_ms + REBALANCE_MS - group.now)
    assert group.consumer_group.members.get("classic") is None


def test_a_classic_member_has_a_rebalance_timeout_to_sync(group: MixedGroup) -> None:
    group.consume("consumer", "two")
    group.join_as_classic("classic", "one")
    for _ in range(3):
        group.advance(SESSION_MS - 1)
        assert group.heartbeat("classic", generation=3) is ErrorCode.NONE
    group.advance(3)
    assert group.consumer_group.members.get("classic") is None


def test_a_classic_member_has_a_session_of_its_own(group: MixedGroup) -> None:
    group.consume("consumer", "two")
    group.join_as_classic("classic", "one")
    group.advance(SESSION_MS)
    assert group.consumer_group.members.get("classic") is None
    assert group.consumer_group.members.get("consumer") is not None


@pytest.mark.parametrize(
    ("member_id", "generation", "error"),
    [
        ("classic", 2, ErrorCode.ILLEGAL_GENERATION),
        ("consumer", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("nobody", 3, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_only_a_classic_member_of_the_generation_is_served(
    group: MixedGroup, member_id: str, generation: int, error: ErrorCode
) -> None:
    group.consume("consumer", "two")
    group.join_as_classic("classic", "one")
    assert group.error_of_sync(member_id, generation) is error
    assert group.heartbeat(member_id, generation=generation) is error


@pytest.mark.parametrize("data", [b"", b"\xff\xff", b"\0\0\0\0"])
def test_a_member_with_a_malformed_subscription_does_not_join(
    group: MixedGroup, data: bytes
) -> None:
    group.consume("consumer", "one")
    joined = group.join("classic", subscription=data)
    assert group.join_error(joined) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert group.consumer_group.members.get("classic") is None


def test_classic_members_do_not_join_where_migration_is_disabled() -> None:
    group = MixedGroup(MigrationPolicy.DISABLED)
    group.consume("consumer", "one")
    joined = group.join_as_classic("classic", "one")
    assert group.join_error(joined) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_classic_members_hear_of_generations_when_their_offsets_are_refused(
    group: MixedGroup,
) -> None:
    group.consume("consumer", "two")
    group.join_as_classic("classic", "one")
    assert group.commit(5, member_id="classic", generation=3) is ErrorCode.NONE
    assert group.commit(5, member_id="classic", generation=4) is ErrorCode.ILLEGAL_GENERATION
    assert group.commit(5, member_id="consumer", generation=4) is ErrorCode.STALE_MEMBER_EPOCH


@pytest.mark.parametrize(
    ("member_id", "error"),
    [
        ("classic", ErrorCode.ILLEGAL_GENERATION),
        ("consumer", ErrorCode.STALE_MEMBER_EPOCH),
    ],
)
def test_offsets_are_not_fetched_at_another_epoch(
    group: MixedGroup, member_id: str, error: ErrorCode
) -> None:
    group.consume("consumer", "two")
    group.join_as_classic("classic", "one")
    request = OffsetFetchRequestGroup(GROUP, member_id, 9, topics=None)
    with pytest.raises(RequestError) as refused:
        group.shard.fetch_offsets(request, require_stable=True)
    assert refused.value.code is error


# Downgrade.


def test_the_end_of_the_last_consumer_makes_a_classic_group(group: MixedGroup) -> None:
    """The classic members keep their targets, and rebalance at once among themselves."""
    group.consume("consumer", "two")
    group.join_as_classic("classic", "one")
    group.consume("consumer", epoch=-1)
    assert group.group.is_in(ClassicGroupState.PREPARING_REBALANCE)
    assert group.group.generation_id == 3
    member = group.group.members.get("classic")
    assert member is not None
    found = assignment_of(member.assignment).assigned_partitions
    assert {one.topic: one.partitions for one in found} == {"one": [0, 1]}


def test_a_failed_downgrade_leaves_a_consumer_group(group: MixedGroup) -> None:
    group.consume("consumer", "two")
    group.join_as_classic("classic", "one")
    group.consume("consumer", epoch=-1, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert group.consumer_group.member_count == 2
    assert group.heartbeat("classic", generation=3) is ErrorCode.NONE


def test_a_downgrade_outlives_the_coordinator(group: MixedGroup) -> None:
    group.consume("consumer", "two")
    group.join_as_classic("classic", "one")
    group.consume("consumer", epoch=-1)
    group.reload()
    assert group.group.is_in(ClassicGroupState.STABLE)
    assert list(group.group.members.keys()) == ["classic"]


@pytest.mark.parametrize("instance", [None, "i"])
def test_a_downgrade_leaves_no_record_of_the_consumer_group(
    group: MixedGroup, instance: str | None
) -> None:
    """A compacted log has the classic group alone, also if a static member came back meanwhile."""
    group.consume("consumer", "two", instance=instance)
    group.join_as_classic("classic", "one")
    if instance is None:
        group.consume("consumer", epoch=-1)
    else:
        group.join_as_classic("", "two", instance=instance)
    compacted = {key: value for _, key, value in group.log}
    values = [key for key, value in compacted.items() if value is not None]
    assert values == [group_metadata_tombstone(GROUP).key_bytes()]


def test_classic_members_alone_do_not_make_a_classic_group_while_a_consumer_stays(
    group: MixedGroup,
) -> None:
    group.consume("one", "two")
    group.consume("other", "two")
    group.join_as_classic("classic", "one")
    group.consume("one", epoch=-1)
    assert group.consumer_group.member_count == 2


def test_the_session_of_the_last_consumer_downgrades_too(group: MixedGroup) -> None:
    group.consume("consumer", "two")
    group.join_as_classic("classic", "one")
    group.sync("classic", generation=3)
    for _ in range(CONSUMER_SESSION_MS // SESSION_MS + 1):
        assert group.heartbeat("classic", generation=3) is ErrorCode.NONE
        group.advance(SESSION_MS - 1)
    assert list(group.group.members.keys()) == ["classic"]


@pytest.mark.parametrize("policy", [MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL])
def test_a_consumer_group_stays_one_if_it_may_not_be_downgraded(policy: MigrationPolicy) -> None:
    """By the policy, or because those who remain are more than a classic group may have."""
    size_max = 1 if policy is MigrationPolicy.BIDIRECTIONAL else 100
    group = MixedGroup(policy, group_max_size=size_max)
    group.consume("consumer", "two")
    group.join_as_classic("a", "one")
    group.join_as_classic("b", "one")
    group.consume("consumer", epoch=-1)
    assert sorted(dict(group.consumer_group.members.items())) == ["a", "b"]


def test_a_full_group_is_downgraded_when_enough_remain() -> None:
    """The size counts without the consumer that leaves."""
    group = MixedGroup(group_max_size=1)
    group.consume("consumer", "two")
    group.join_as_classic("classic", "one")
    group.consume("consumer", epoch=-1)
    assert list(group.group.members.keys()) == ["classic"]
