"""Bugs of consumer groups: those that Kafka once had, and those that others may have (KIP-848)."""

from typing import Final

import pytest
from tests.unit.groups.consumers import INTERVAL_MS, NOTHING, REBALANCE_MS, SESSION_MS, Consumers
from tests.unit.groups.coordinator import GROUP, JOIN_MS

from kvorum.groups.consumer_group.group import ConsumerGroupState
from kvorum.groups.modern_group.member_state import MemberState
from kvorum.groups.timeouts import MemberRebalance
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

SUBSCRIPTION: Final = bytes(2) + ConsumerProtocolSubscription(topics=["t"]).encode(0)


@pytest.fixture
def consumers() -> Consumers:
    """A group's coordinator, with topics of four partitions and of one."""
    return Consumers(t=4, other=1)


# Bugs of Kafka.


def test_a_member_without_topics_is_at_the_first_epoch(consumers: Consumers) -> None:
    """KAFKA-20268."""
    entered = consumers.enter("a")
    assert (entered.member_epoch, consumers.assigned(entered)) == (1, {})
    assert consumers.refusal("a", 1) is ErrorCode.NONE


def test_a_topic_that_is_not_subscribed_to_any_more_is_taken_at_once(
    consumers: Consumers,
) -> None:
    """KAFKA-19431: the target is still the old one."""
    epoch = consumers.enter("a", "t").member_epoch
    told = consumers.beat("a", epoch, "other", owned={"t": range(4)}, says_all=True)
    assert (told.member_epoch, consumers.assigned(told)) == (epoch, {})
    member = consumers.consumer_group.member("a")
    assert member.state is MemberState.UNREVOKED_PARTITIONS


def test_a_deleted_topic_that_an_expression_matches_begins_an_epoch(consumers: Consumers) -> None:
    """KAFKA-18916."""
    consumers.enter("a", regex="o.*")
    consumers.advance(0)
    epoch = consumers.beat("a", 1).member_epoch
    assert epoch == 2
    consumers.delete_topic("other")
    consumers.advance(INTERVAL_MS)
    assert consumers.beat("a", epoch, owned=NOTHING).member_epoch == epoch + 1


def test_a_heartbeat_that_says_all_is_answered_with_all(consumers: Consumers) -> None:
    """KAFKA-16367: the answer before may have been lost."""
    epoch = consumers.enter("a", "t").member_epoch
    told = consumers.beat("a", epoch, "t", owned=NOTHING, says_all=True)
    assert consumers.assigned(told) == {"t": [0, 1, 2, 3]}


def test_a_static_member_takes_its_classic_place_and_others_may_have_been_assigned_nothing(
    consumers: Consumers,
) -> None:
    """KAFKA-17228; and KAFKA-17733, where there are more members than partitions."""
    joins = [consumers.join(instance=one, subscription=SUBSCRIPTION) for one in ("one", "two")]
    consumers.advance(JOIN_MS)
    first, second = (consumers.join_response(one).member_id for one in joins)
    consumers.sync(first, {first: b"", second: b""})
    assert consumers.enter("new", "t", instance="one").error_code == ErrorCode.NONE
    members = consumers.consumer_group.members
    assert members.get(first) is None
    assert members.get(second) is not None


# Bugs of others.


def test_a_partition_is_given_once_its_owner_has_dropped_it(consumers: Consumers) -> None:
    consumers.enter("a", "t")
    consumers.advance(INTERVAL_MS)
    entered = consumers.enter("b", "t")
    assert consumers.assigned(entered) == {}
    told = consumers.beat("a", 2, owned={"t": range(4)})
    kept = consumers.assigned(told)
    assert kept is not None
    assert (told.member_epoch, len(kept["t"])) == (2, 2)
    # The member does not say what it owns, and then that it owns all still.
    assert consumers.beat("a", 2).member_epoch == 2
    assert consumers.beat("a", 2, owned={"t": range(4)}).member_epoch == 2
    assert consumers.assigned(consumers.beat("b", 3)) is None
    assert consumers.beat("a", 2, owned=kept).member_epoch == 3
    given = consumers.assigned(consumers.beat("b", 3))
    assert given == {"t": sorted(set(range(4)) - set(kept["t"]))}
    assert consumers.consumer_group.state() is ConsumerGroupState.STABLE


def test_a_member_that_has_missed_an_answer_repeats_itself(consumers: Consumers) -> None:
    epoch, kept, others = consumers.pair()
    consumers.advance(INTERVAL_MS)
    consumers.depart("b")
    assert consumers.beat("a", epoch, owned=kept).member_epoch == epoch + 1
    assert consumers.refusal("a", epoch, owned=kept) is ErrorCode.NONE
    member = consumers.consumer_group.member("a")
    assert member.previous_member_epoch == epoch
    assert others != kept


def test_a_member_of_the_epoch_before_may_own_nothing_of_others(consumers: Consumers) -> None:
    consumers.enter("a", "t")
    consumers.advance(INTERVAL_MS)
    consumers.enter("b", "other")
    epoch = consumers.beat("a", 2, owned={"t": range(4)}).member_epoch
    assert epoch == 3
    code = consumers.refusal("a", 2, owned={"t": range(4), "other": [0]})
    assert code is ErrorCode.FENCED_MEMBER_EPOCH
    assert consumers.refusal("a", 2) is ErrorCode.FENCED_MEMBER_EPOCH


def test_the_time_to_drop_partitions_concerns_its_own_epoch(consumers: Consumers) -> None:
    consumers.enter("a", "t")
    late = MemberRebalance(GROUP, "a", 1)
    consumers.append(consumers.shard.on_timeout(late, consumers.now))
    assert consumers.consumer_group.members.get("a") is not None


def test_a_member_that_does_not_drop_partitions_in_time_is_fenced(consumers: Consumers) -> None:
    consumers.enter("a", "t")
    consumers.advance(INTERVAL_MS)
    consumers.enter("b", "t")
    consumers.beat("a", 2, owned={"t": range(4)})
    consumers.advance(REBALANCE_MS - 1)
    assert consumers.refusal("a", 2, owned={"t": range(4)}) is ErrorCode.NONE
    consumers.advance(1)
    assert consumers.refusal("a", 2, owned={"t": range(4)}) is ErrorCode.UNKNOWN_MEMBER_ID
    assert consumers.assigned(consumers.beat("b", 3)) == {"t": [0, 1, 2, 3]}


def test_a_static_member_that_is_away_keeps_its_partitions(consumers: Consumers) -> None:
    consumers.enter("a", "t", instance="one")
    consumers.depart("a", -2, instance="one")
    consumers.advance(INTERVAL_MS)
    assert consumers.assigned(consumers.enter("b", "t")) == {}
    back = consumers.enter("c", "t", instance="one")
    kept = consumers.assigned(back)
    assert kept is not None
    assert set(kept["t"]) <= set(range(4))
    assert consumers.consumer_group.owner_epoch(consumers.image.topics.ids["t"], 0) != -1
    assert consumers.refusal("a", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_new_coordinator_ends_the_sessions_of_members_that_are_gone(consumers: Consumers) -> None:
    consumers.enter("a", "t")
    consumers.reload()
    consumers.advance(SESSION_MS - 1)
    assert consumers.consumer_group.members.get("a") is not None
    consumers.advance(1)
    assert consumers.consumer_group.members.get("a") is None


def test_a_heartbeat_begins_the_session_again(consumers: Consumers) -> None:
    consumers.enter("a", "t")
    consumers.advance(SESSION_MS - 1)
    consumers.beat("a", 2)
    consumers.advance(SESSION_MS - 1)
    assert consumers.refusal("a", 2) is ErrorCode.NONE


def test_what_a_member_has_left_goes_to_the_others(consumers: Consumers) -> None:
    epoch, kept, _ = consumers.pair()
    consumers.advance(INTERVAL_MS)
    consumers.depart("b")
    told = consumers.beat("a", epoch, owned=kept)
    assert told.member_epoch == epoch + 2 - 1
    assert consumers.assigned(told) == {"t": [0, 1, 2, 3]}


def test_a_commit_in_an_earlier_epoch_is_for_what_the_member_had_then(
    consumers: Consumers,
) -> None:
    """KIP-1251."""
    epoch, kept, others = consumers.pair()
    (first, *_), (foreign, *_) = kept["t"], others["t"]
    assert consumers.commit_of("a", epoch - 1, "t", first) is ErrorCode.NONE
    assert consumers.commit_of("a", epoch - 1, "t", foreign) is ErrorCode.STALE_MEMBER_EPOCH
    assert consumers.commit_of("b", epoch - 1, "t", foreign) is ErrorCode.STALE_MEMBER_EPOCH
    assert consumers.commit_of("a", epoch + 1, "t", first) is ErrorCode.STALE_MEMBER_EPOCH
    assert consumers.commit_of("c", epoch, "t", first) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_subscriber_of_an_expression_takes_it_along(consumers: Consumers) -> None:
    consumers.enter("a", regex="o.*")
    consumers.advance(0)
    assert consumers.consumer_group.resolved_regexes.get("o.*") is not None
    consumers.depart("a")
    assert consumers.consumer_group.resolved_regexes.get("o.*") is None
