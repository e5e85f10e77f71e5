"""The story of a made-up cluster, as the batches of records that its controller would write.

Brokers register, restart and fail; topics come and go; replicas lag and catch up; leaders go back
to their preferred replicas; configurations, ACLs and quotas change; controllers elect a leader.
Most records are changes of partitions, as in real clusters with many partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from kvorum.controller.broker_changes import FENCE, IN_CONTROLLED_SHUTDOWN, UNFENCE
from kvorum.metadata.acl_codes import (
    WILDCARD,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
)
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    METADATA_VERSION_FEATURE,
)
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message

NO_LEADER = -1


@dataclass(slots=True)
class PartitionState:
    """One partition as the records so far describe it."""

    topic_id: bytes
    partition_id: int
    replicas: list[int]
    isr: list[int] = field(default_factory=list[int])
    leader: int = NO_LEADER

    @classmethod
    def new(cls, topic_id: bytes, partition_id: int, replicas: list[int]) -> PartitionState:
        """Return a partition whose replicas are all in sync and whose first replica leads."""
        return cls(topic_id, partition_id, replicas, list(replicas), replicas[0])

    def record(self, directory_of: dict[int, bytes]) -> PartitionRecord:
        return PartitionRecord(
            partition_id=self.partition_id,
            topic_id=self.topic_id,
            replicas=self.replicas,
            isr=self.isr,
            leader=self.leader,
            leader_epoch=0,
            partition_epoch=0,
            directories=[directory_of[replica] for replica in self.replicas],
        )

    def without(self, broker_id: int, live: Iterable[int]) -> PartitionChangeRecord | None:
        """Return the change after a broker has gone: out of the ISR, and no leader any longer.

        The last member of the ISR stays in it, and the partition then has no leader.
        """
        if broker_id not in self.isr:
            return None
        change = PartitionChangeRecord(partition_id=self.partition_id, topic_id=self.topic_id)
        remaining = [one for one in self.isr if one != broker_id]
        if remaining:
            change.isr = self.isr = remaining
        elif self.leader == NO_LEADER:
            return None
        if self.leader == broker_id:
            alive = set(live)
            leaders = [one for one in self.replicas if one in remaining and one in alive]
            change.leader = self.leader = leaders[0] if leaders else NO_LEADER
        return change

    def with_synced(self, broker_id: int) -> PartitionChangeRecord | None:
        """Return the change after a replica has caught up; without a leader it becomes one."""
        if broker_id not in self.replicas:
            return None
        change = PartitionChangeRecord(partition_id=self.partition_id, topic_id=self.topic_id)
        if broker_id in self.isr:
            if self.leader != NO_LEADER:
                return None
            change.leader = self.leader = broker_id
            return change
        if self.leader == NO_LEADER:
            return None
        synced = {*self.isr, broker_id}
        change.isr = self.isr = [one for one in self.replicas if one in synced]
        return change

    def with_preferred_leader(self) -> PartitionChangeRecord | None:
        """Return the change by which the first replica leads again, if it is in sync."""
        preferred = self.replicas[0]
        if self.leader in {preferred, NO_LEADER} or preferred not in self.isr:
            return None
        self.leader = preferred
        return PartitionChangeRecord(
            partition_id=self.partition_id, topic_id=self.topic_id, leader=preferred
        )


BEGIN_MS = 1_750_000_000_000
CONTROLLER_IDS = (101, 102, 103)
PARTITIONS_PER_TOPIC_MAX = 24
REPLICATION_FACTOR = 3
CHANGES_PER_BATCH_MAX = 500
LEVEL = LATEST_PRODUCTION_METADATA_VERSION
UUID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that are written together; without any it is the election of `leader_id`."""

    at_ms: int
    epoch: int
    leader_id: int
    records: tuple[RecordAndVersion, ...]

    @property
    def record_count(self) -> int:
        """The number of offsets that the batch takes."""
        return len(self.records) or 1


@dataclass(slots=True)
class _Broker:
    broker_id: int
    directory: bytes
    epoch: int = -1
    is_live: bool = False


class ClusterStory:
    """The story of one cluster; the same seed tells the same story."""

    def __init__(self, seed: int, *, brokers: int = 9, partitions: int = 1200) -> None:
        self._random = Random(seed)
        self._brokers = {
            broker_id: _Broker(broker_id, self._random.randbytes(UUID_BYTES))
            for broker_id in range(1, brokers + 1)
        }
        self._topics: dict[str, list[PartitionState]] = {}
        self._topic_count = max(1, 2 * partitions // (1 + PARTITIONS_PER_TOPIC_MAX))
        self._topic_number = 0
        self._offset = 0
        self._now_ms = BEGIN_MS
        self._epoch = 0
        self._leader_id = CONTROLLER_IDS[0]

    def batches(self, records: int) -> Iterator[Batch]:
        """Yield batches until they hold at least `records` records."""
        happenings = self._happenings()
        while self._offset < records:
            batch = next(happenings)
            self._offset += batch.record_count
            yield batch

    def _happenings(self) -> Iterator[Batch]:
        yield self._elect()
        level = FeatureLevelRecord(name=METADATA_VERSION_FEATURE, feature_level=int(LEVEL))
        yield self._batch([(level, 0)])
        for broker in self._brokers.values():
            yield self._register(broker)
            yield self._change_broker(broker, fenced=UNFENCE)
        while len(self._topics) < self._topic_count:
            yield self._create_topic()
        kinds: tuple[tuple[Callable[[], Iterable[Batch]], int], ...] = (
            (self._lag, 40),
            (self._idle, 20),
            (self._restart, 3),
            (self._fail, 1),
            (self._replace_topic, 4),
            (self._configure, 6),
            (self._permit, 2),
            (self._limit, 2),
            (lambda: [self._elect()], 1),
        )
        happen, weights = zip(*kinds, strict=True)
        while True:
            (kind,) = self._random.choices(happen, weights)
            yield from kind()

    def _batch(self, records: Iterable[RecordAndVersion]) -> Batch:
        self._now_ms += self._random.randint(1, 400)
        return Batch(self._now_ms, self._epoch, self._leader_id, tuple(records))

    def _elect(self) -> Batch:
        self._epoch += 1
        self._leader_id = self._random.choice(CONTROLLER_IDS)
        return self._batch(())

    def _idle(self) -> Iterator[Batch]:
        for _ in range(self._random.randint(1, 20)):
            yield self._batch([(NoOpRecord(), 0)])
            self._now_ms += 500

    # Brokers

    def _live(self) -> list[int]:
        return [broker.broker_id for broker in self._brokers.values() if broker.is_live]

    def _register(self, broker: _Broker) -> Batch:
        broker.epoch = self._offset
        host = f"broker-{broker.broker_id}.example"
        record = RegisterBrokerRecord(
            broker_id=broker.broker_id,
            incarnation_id=self._random.randbytes(UUID_BYTES),
            broker_epoch=broker.epoch,
            end_points=[
                RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host=host, port=9092)
            ],
            rack=f"rack-{broker.broker_id % REPLICATION_FACTOR}",
            log_dirs=[broker.directory],
        )
        return self._batch([(record, LEVEL.register_broker_record_version)])

    def _change_broker(
        self,
        broker: _Broker,
        *,
        fenced: int = 0,
        shutdown: int = 0,
        first: Iterable[RecordAndVersion] = (),
        then: Iterable[RecordAndVersion] = (),
    ) -> Batch:
        broker.is_live = fenced == UNFENCE or (broker.is_live and not fenced and not shutdown)
        record = BrokerRegistrationChangeRecord(
            broker_id=broker.broker_id,
            broker_epoch=broker.epoch,
            fenced=fenced,
            in_controlled_shutdown=shutdown,
        )
        return self._batch([*first, (record, 1 if shutdown else 0), *then])

    def _some_broker(self) -> _Broker | None:
        live = self._live()
        if len(live) < len(self._brokers):
            return None
        return self._brokers[self._random.choice(live)]

    def _restart(self) -> Iterator[Batch]:
        broker = self._some_broker()
        if broker is None:
            return
        broker.is_live = False
        changes = self._leave(broker.broker_id)
        yield self._change_broker(broker, shutdown=IN_CONTROLLED_SHUTDOWN, then=next(changes, ()))
        yield from map(self._batch, changes)
        yield self._change_broker(broker, fenced=FENCE)
        self._now_ms += self._random.randint(5_000, 60_000)
        yield from self._come_back(broker)

    def _fail(self) -> Iterator[Batch]:
        broker = self._some_broker()
        if broker is None:
            return
        broker.is_live = False
        *before, last = list(self._leave(broker.broker_id)) or [()]
        yield from map(self._batch, before)
        yield self._change_broker(broker, fenced=FENCE, first=last)
        self._now_ms += self._random.randint(60_000, 3_600_000)
        yield from self._come_back(broker)

    def _come_back(self, broker: _Broker) -> Iterator[Batch]:
        yield self._register(broker)
        yield self._change_broker(broker, fenced=UNFENCE)
        partitions = self.partitions()
        self._random.shuffle(partitions)
        synced = (one.with_synced(broker.broker_id) for one in partitions)
        yield from map(self._batch, _in_batches(synced, size_max=20))
        preferred = (one.with_preferred_leader() for one in self.partitions())
        yield from map(self._batch, _in_batches(preferred))

    # Topics

    def partitions(self) -> list[PartitionState]:
        """Return the partitions that exist now, as the records so far describe them."""
        return [one for partitions in self._topics.values() for one in partitions]

    def _create_topic(self) -> Batch:
        self._topic_number += 1
        name, topic_id = f"orders.{self._topic_number}", self._random.randbytes(UUID_BYTES)
        live = self._live()
        directories = {one.broker_id: one.directory for one in self._brokers.values()}
        factor = min(REPLICATION_FACTOR, len(live))
        self._topics[name] = [
            PartitionState.new(topic_id, number, self._random.sample(live, factor))
            for number in range(self._random.randint(1, PARTITIONS_PER_TOPIC_MAX))
        ]
        version = LEVEL.partition_record_version
        created = [(one.record(directories), version) for one in self._topics[name]]
        return self._batch([(TopicRecord(name=name, topic_id=topic_id), 0), *created])

    def _replace_topic(self) -> Iterator[Batch]:
        gone = self._topics.pop(self._random.choice(list(self._topics)))
        yield self._batch([(RemoveTopicRecord(topic_id=gone[0].topic_id), 0)])
        yield self._create_topic()

    def _lag(self) -> Iterator[Batch]:
        """Let a follower of some partitions fall behind and catch up."""
        partitions = self.partitions()
        count = min(self._random.randint(1, 30), len(partitions))
        partitions = self._random.sample(partitions, count)
        lagging = [
            (one, one.isr[-1])
            for one in partitions
            if len(one.isr) > 1 and one.isr[-1] != one.leader
        ]
        live = self._live()
        gone = (one.without(broker_id, live) for one, broker_id in lagging)
        yield from map(self._batch, _in_batches(gone))
        self._now_ms += self._random.randint(1_000, 30_000)
        synced = (one.with_synced(broker_id) for one, broker_id in lagging)
        yield from map(self._batch, _in_batches(synced, size_max=5))

    def _leave(self, broker_id: int) -> Iterator[Sequence[RecordAndVersion]]:
        live = self._live()
        return _in_batches(one.without(broker_id, live) for one in self.partitions())

    # The operators' changes

    def _configure(self) -> Iterator[Batch]:
        record = ConfigRecord(
            resource_type=int(ResourceType.TOPIC),
            resource_name=self._random.choice(list(self._topics)),
            name="retention.ms",
            value=str(self._random.randint(1, 30) * 86_400_000),
        )
        yield self._batch([(record, 0)])

    def _permit(self) -> Iterator[Batch]:
        record = AccessControlEntryRecord(
            id=self._random.randbytes(UUID_BYTES),
            resource_type=AclResourceType.TOPIC,
            resource_name=self._random.choice(list(self._topics)),
            pattern_type=PatternType.LITERAL,
            principal=f"User:service-{self._random.randint(1, 50)}",
            host=WILDCARD,
            operation=AclOperation.READ,
            permission_type=PermissionType.ALLOW,
        )
        yield self._batch([(record, 0)])

    def _limit(self) -> Iterator[Batch]:
        user = f"service-{self._random.randint(1, 50)}"
        record = ClientQuotaRecord(
            entity=[ClientQuotaRecord.EntityData(entity_type="user", entity_name=user)],
            key="producer_byte_rate",
            value=float(self._random.randint(1, 100) * 1_000_000),
        )
        yield self._batch([(record, 0)])


def _in_batches(
    changes: Iterable[Message | None], size_max: int = CHANGES_PER_BATCH_MAX
) -> Iterator[Sequence[RecordAndVersion]]:
    pending: list[RecordAndVersion] = []
    for change in changes:
        if change is not None:
            pending.append((change, LEVEL.partition_record_version))
        if len(pending) == size_max:
            yield pending
            pending = []
    if pending:
        yield pending
