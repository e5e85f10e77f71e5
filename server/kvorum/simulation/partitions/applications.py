"""The applications of a cluster: producers, consumers, members of groups, a short-lived topic."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from kvorum.broker.partition import ALL_IN_SYNC
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.broker import Broker
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.clients import LEADER_ONLY, Consumer, Deleter, Producer
from kvorum.simulation.partitions.consumer_group_members import ConsumerGroupMembers
from kvorum.simulation.partitions.group_members import GroupMembers
from kvorum.simulation.partitions.groups import Committer
from kvorum.simulation.partitions.logged_in_applications import LoggedInApplications
from kvorum.simulation.partitions.pipelined_producer import PIPELINED_ID, PipelinedProducer
from kvorum.simulation.partitions.session_consumer import SessionConsumer
from kvorum.simulation.partitions.settings import (
    HAS_FETCH_SESSIONS,
    HAS_PIPELINES,
    HAS_SHORT_LIVED_TOPIC,
    OFFSETS_ID,
)
from kvorum.simulation.partitions.share_group_members import ShareGroupMembers
from kvorum.simulation.partitions.short_lived_topic import ShortLivedTopic
from kvorum.simulation.partitions.transactional_applications import TransactionalApplications
from kvorum.simulation.partitions.transactions import (
    CommittedConsumer,
    TransactionalCommitter,
    TransactionalProducer,
    TransactionLedger,
)
from kvorum.wire.records.batch import INT32_MAX

MEMBERS_GROUP: Final = "readers"


class Applications:
    """All clients of a cluster; each does one thing at a time, again and again."""

    def __init__(self, around: BrokerSurroundings) -> None:
        self._around = around
        count = around.settings.partitions
        self.transactions: list[TransactionLedger] = []
        """The books of the transactions of each partition of the topic that stays."""
        self._coordinated: TransactionalApplications | None = None
        self._producers: list[Producer] = [*self._plain_producers(), *self._pipelined_producers()]
        if around.settings.transactions is None:
            self._make_own_coordinators()
        else:
            self._coordinated = TransactionalApplications(around, around.settings.transactions)
            self.transactions += [self._coordinated.ledger() for _ in range(count)]
        self._consumers = [
            consumer
            for index, ledger in enumerate(self.transactions)
            for consumer in (Consumer(around, index), CommittedConsumer(around, index, ledger))
        ]
        self._committers: list[Committer | TransactionalCommitter] = [
            Committer(around, "group 0", None),
            Committer(around, "group 1", "instance"),
        ]
        if self._coordinated is None:
            self._committers.append(TransactionalCommitter(around, "workers"))
        self._group_members = GroupMembers(around, MEMBERS_GROUP)
        self.deleters = [Deleter(around, index) for index in range(count)]
        """The operators who delete records."""
        has_sessions = around.random_for("fetch sessions").random() < HAS_FETCH_SESSIONS
        self._session_consumers = [SessionConsumer(around) for _ in range(2 * has_sessions)]
        topics = around.random_for("topics that come and go")
        has_short_lived_topic = topics.random() < HAS_SHORT_LIVED_TOPIC
        self._short_lived_topic = ShortLivedTopic(around, topics) if has_short_lived_topic else None
        consumer_group = around.settings.groups.consumer
        self._consumers_group = (
            None if consumer_group is None else ConsumerGroupMembers(around, consumer_group)
        )
        share_group = around.settings.groups.share
        self._sharers = None if share_group is None else ShareGroupMembers(around, share_group)
        logins = around.logins
        self._users = None if logins is None else LoggedInApplications(around, logins)

    def _make_own_coordinators(self) -> None:
        """Have producers play the part of the coordinators of transactions."""
        around = self._around
        self.transactions += [
            TransactionLedger(around.checks, keeps_markers=around.settings.keeps_markers)
            for _ in range(around.settings.partitions)
        ]
        self._producers += [
            TransactionalProducer(around, index, ledger)
            for index, ledger in enumerate(self.transactions)
        ]

    def _plain_producers(self) -> list[Producer]:
        around = self._around
        random = around.random
        return [
            producer
            for index in range(around.settings.partitions)
            for producer in (
                Producer(
                    around,
                    index,
                    acks=ALL_IN_SYNC,
                    producer_id=100 + index,
                    first_sequence=random.choice((0, INT32_MAX - 20)),
                ),
                Producer(around, index, acks=ALL_IN_SYNC, producer_id=-1),
                Producer(around, index, acks=random.choice((0, LEADER_ONLY)), producer_id=-1),
            )
        ]

    def _pipelined_producers(self) -> list[PipelinedProducer]:
        around = self._around
        pipelines = around.random_for("several batches in flight")
        if pipelines.random() >= HAS_PIPELINES:
            return []
        return [
            PipelinedProducer(
                around,
                index,
                producer_id=PIPELINED_ID + index,
                first_sequence=pipelines.choice((0, INT32_MAX - 20)),
            )
            for index in range(around.settings.partitions)
        ]

    def begin(self) -> None:
        """Let all of them do what they do again and again."""
        every = self._around.every
        for producer in self._producers:
            every(24, producer.step)
        for consumer in self._consumers:
            every(40, consumer.step)
        for session_consumer in self._session_consumers:
            every(40, session_consumer.step)
        for committer in self._committers:
            every(40, committer.step)
        for member in self._group_members.members:
            every(40, member.step)
        if self._short_lived_topic is not None:
            every(30, self._short_lived_topic.step)
        for others in (self._coordinated, self._consumers_group, self._sharers, self._users):
            if others is not None:
                others.begin()
        every(1_000, self._group_members.step)

    def check_end(self, brokers: Mapping[int, Broker], waiting: Collection[int]) -> None:
        """Check that all have come to an end, but for those of partitions that wait for someone."""
        around = self._around
        if self._short_lived_topic is not None:
            self._short_lived_topic.check_end(list(brokers.values()))
        if self._coordinated is not None:
            self._coordinated.check_end(brokers, waiting)
        if self._users is not None:
            self._users.check_end(waiting)
        for producer in self._producers:
            if producer.index not in waiting:
                around.checks.demand(
                    promises.WRITES_END, producer.describe(), holds=producer.is_idle
                )
        if around.places.number(OFFSETS_ID, 0) not in waiting:
            self._check_groups(brokers)
            if self._sharers is not None:
                self._sharers.check_end(brokers, waiting)

    def _check_groups(self, brokers: Mapping[int, Broker]) -> None:
        checks = self._around.checks
        for committer in self._committers:
            checks.demand(promises.COMMITS_END, committer.describe(), holds=committer.is_idle)
        for member in self._group_members.members:
            is_settled = member.is_stable or member.is_over
            checks.demand(promises.MEMBERS_SETTLE, member.describe(), holds=is_settled)
        listed = Counter(
            group_id for broker in brokers.values() for group_id in broker.listed_groups()
        )
        if self._consumers_group is not None:
            self._consumers_group.check_end(list(brokers.values()))
        is_alone = listed[MEMBERS_GROUP] == 1
        checks.demand(promises.ONE_COORDINATOR, f"{listed}", holds=is_alone)
