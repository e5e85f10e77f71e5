"""The members of a consumer group, a topic of theirs that comes, grows and goes, and their end."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Final

from kvorum.groups.consumer_group.group import ConsumerGroupState
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.broker import Broker
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.consumer_group_ledger import ConsumerGroupLedger, TopicIdPartition
from kvorum.simulation.partitions.consumer_group_settings import ClusterConsumerGroupSettings
from kvorum.simulation.partitions.consumer_member import (
    CONSUMER_GROUP,
    GROWING_TOPIC,
    ConsumerMember,
)
from kvorum.simulation.partitions.settings import FAULTS_FROM_MS, RESTLESS_UNTIL_MS, TOPIC
from kvorum.simulation.partitions.topic_operator import TopicOperator
from kvorum.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse

IS_STOPPED: Final = 0.2
STOPPED_MS_MAX: Final = 1_500
GROWS: Final = 0.04
IS_DELETED: Final = 0.02
PARTITIONS_AT_FIRST_MAX: Final = 3
PARTITIONS_MAX: Final = 6
TOPIC_CHANGES_UNTIL_MS: Final = RESTLESS_UNTIL_MS + 400
"""Later than what members do unasked: they have to look at the topic for its own sake."""


class ConsumerGroupMembers:
    """The members of the group, which an operator stops all at once and starts again."""

    def __init__(self, around: BrokerSurroundings, settings: ClusterConsumerGroupSettings) -> None:
        self._around = around
        self._random = random = around.random_for("consumers")
        self._topic = TopicOperator(around, GROWING_TOPIC, random)
        ledger = ConsumerGroupLedger(settings, around.checks)
        around.consumer_groups[CONSUMER_GROUP] = ledger
        self._members = [
            ConsumerMember(
                around, ledger, settings, random=random, instance_id=_draw_instance_id(random)
            )
            for _ in range(settings.members)
        ]

    def begin(self) -> None:
        """Let all of them do what they do again and again."""
        every = self._around.every
        for member in self._members:
            every(40, member.step)
        every(60, self._change_topic)
        every(1_000, self._stop_all)

    def _change_topic(self) -> None:
        """Have the topic created, grown or deleted, now and then."""
        random, topic = self._random, self._topic.topic
        if not FAULTS_FROM_MS < self._around.now_ms < TOPIC_CHANGES_UNTIL_MS:
            return
        if topic is None:
            self._topic.create(random.randint(1, PARTITIONS_AT_FIRST_MAX))
        elif random.random() < IS_DELETED:
            self._topic.delete(topic)
        elif random.random() < GROWS and len(topic.partitions) < PARTITIONS_MAX:
            self._topic.grow(len(topic.partitions) + random.randint(1, 2))

    def _stop_all(self) -> None:
        random = self._random
        if self._around.now_ms > RESTLESS_UNTIL_MS or random.random() > IS_STOPPED:
            return
        away_ms = random.uniform(0, STOPPED_MS_MAX)
        for member in self._members:
            if not member.is_over:
                member.go(away_ms, leave_epoch=None)

    # --- the end ---

    def check_end(self, brokers: Sequence[Broker]) -> None:
        """Check that the group is stable, and that each member has what it is to have."""
        members = {one.member_id: one for one in self._members if not one.is_over}
        described = [
            broker.described_group(CONSUMER_GROUP)
            for broker in brokers
            if CONSUMER_GROUP in broker.listed_groups()
        ]
        message = f"{described}, {[one.describe() for one in members.values()]}"
        is_reached = len(described) == 1 and described[0] is not None
        if is_reached and described[0] is not None:
            group = described[0]
            is_stable = group.group_state == ConsumerGroupState.STABLE.value
            is_known = {one.member_id for one in group.members} == members.keys()
            is_reached = (
                is_stable
                and is_known
                and all(
                    _has_its_target(group, one, members[one.member_id]) for one in group.members
                )
                and self._is_all_owned(members.values())
            )
        self._around.checks.demand(promises.TARGETS_REACHED, message, holds=is_reached)

    def _is_all_owned(self, members: Iterable[ConsumerMember]) -> bool:
        """Return whether each partition of the members' topics has one owner.

        An expression is matched again after ten seconds, so it may not have met a later topic.
        """
        topics = self._around.committed_image.topics
        wanted: set[TopicIdPartition] = set()
        owned: list[TopicIdPartition] = []
        for member in members:
            owned += member.membership.owned
            names = {*member.subscription.names}
            if member.subscription.regex:
                names.add(TOPIC)
            for topic in map(topics.by_name, sorted(names)):
                if topic is not None:
                    wanted |= {(topic.id, index) for index, _ in topic.partitions.in_order()}
        return wanted <= set(owned) and len(owned) == len(set(owned))


def _has_its_target(
    group: ConsumerGroupDescribeResponse.DescribedGroup,
    described: ConsumerGroupDescribeResponse.Member,
    member: ConsumerMember,
) -> bool:
    """Return whether a member has its target, at the epoch of that, by its own account too."""
    target = _partitions(described.target_assignment)
    return (
        described.member_epoch == group.assignment_epoch == member.membership.epoch
        and _partitions(described.assignment) == target == member.membership.owned
    )


def _partitions(assignment: ConsumerGroupDescribeResponse.Assignment) -> set[TopicIdPartition]:
    return {
        (topic.topic_id, index)
        for topic in assignment.topic_partitions
        for index in topic.partitions
    }


def _draw_instance_id(random: Random) -> str | None:
    return random.choice((None, f"consumer {random.randint(0, 1)}"))
