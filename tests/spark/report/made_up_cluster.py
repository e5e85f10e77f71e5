"""A cluster that writes what a controller would write of the things that happen to it."""

from collections.abc import Iterable, Iterator
from random import Random

from benchmarks.fleet.cluster_story import PartitionState

from kvorum.controller.broker_changes import FENCE, IN_CONTROLLED_SHUTDOWN, UNFENCE
from kvorum.history import LogRecord
from kvorum.metadata.acl_codes import (
    WILDCARD,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
)
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.credentials_image import ScramMechanism
from kvorum.metadata.metadata_version import LATEST_PRODUCTION_METADATA_VERSION as LEVEL
from kvorum.metadata.metadata_version import METADATA_VERSION_FEATURE
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.register_controller_record import RegisterControllerRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord
from kvorum.wire.primitives import Message

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
BEGIN_MS = 1_794_787_200_000  # Monday, 2026-11-16, 00:00:00 UTC
CONTROLLERS = (101, 102, 103)


class MadeUpCluster:
    """A log in the making; `now_ms` is the time of the records that come next."""

    def __init__(self, broker_count: int, *, seed: int = 1, begin_ms: int = BEGIN_MS) -> None:
        self.records: list[LogRecord] = []
        self.now_ms = begin_ms
        self.live: set[int] = set()
        self.topics: dict[str, list[PartitionState]] = {}
        self._random = Random(seed)
        self._directories = {one: self._id() for one in range(1, broker_count + 1)}
        self._broker_epochs: dict[int, int] = {}
        self._epoch = 0
        self.elect(CONTROLLERS[0])
        self.set_feature(METADATA_VERSION_FEATURE, int(LEVEL))
        for broker in self._directories:
            self.start(broker)

    @property
    def partitions(self) -> list[PartitionState]:
        return [one for partitions in self.topics.values() for one in partitions]

    def later(self, duration_ms: int) -> None:
        self.now_ms += duration_ms

    def write(self, *messages: Message) -> None:
        for message in messages:
            version = type(message).MAX_VERSION if message.API_KEY is not None else 0
            if isinstance(message, RegisterBrokerRecord):
                version = LEVEL.register_broker_record_version
            offset = len(self.records)
            self.records.append(LogRecord(offset, self._epoch, self.now_ms, message, version))

    def idle(self) -> None:
        self.write(NoOpRecord())

    def elect(self, leader: int, *, lost: int = 0) -> None:
        self._epoch += 1 + lost
        voters = [LeaderChangeMessage.Voter(voter_id=one) for one in CONTROLLERS]
        granting = [voter for voter in voters if voter.voter_id != CONTROLLERS[-1]]
        self.write(LeaderChangeMessage(leader_id=leader, voters=voters, granting_voters=granting))

    def register_controller(self, controller: int, incarnation: int, port: int = 9093) -> None:
        """Register an incarnation of a controller, with the only listener on `port`."""
        endpoint = RegisterControllerRecord.ControllerEndpoint(
            "CONTROLLER", f"controller-{controller}", port
        )
        feature = RegisterControllerRecord.ControllerFeature(
            METADATA_VERSION_FEATURE, 7, int(LEVEL)
        )
        # Ids of other things stay the same with controllers and without.
        incarnation_id = bytes([controller, incarnation]) * 8
        self.write(
            RegisterControllerRecord(
                controller, incarnation_id, end_points=[endpoint], features=[feature]
            )
        )

    # Brokers

    def start(self, broker: int) -> None:
        self._broker_epochs[broker] = len(self.records)
        self.write(
            RegisterBrokerRecord(
                broker_id=broker,
                incarnation_id=self._id(),
                broker_epoch=len(self.records),
                rack=f"rack-{broker % 3}",
                log_dirs=[self._directories[broker]],
            )
        )
        self.unfence(broker)

    def unfence(self, broker: int) -> None:
        self.live.add(broker)
        self._change(broker, fenced=UNFENCE)
        self.write(
            *_changes(one.with_synced(broker) for one in self.partitions if one.isr == [broker])
        )

    def fence(self, broker: int) -> None:
        self._leave(broker)
        self._change(broker, fenced=FENCE)

    def shut_down(self, broker: int) -> None:
        self._change(broker, shutdown=IN_CONTROLLED_SHUTDOWN)
        self._leave(broker)

    def sync(self, broker: int, share: float = 1.0) -> None:
        behind = [
            one
            for one in self.partitions
            if broker in one.replicas and (broker not in one.isr or one.leader < 0)
        ]
        count = round(len(behind) * share)
        self.write(*_changes(one.with_synced(broker) for one in behind[:count]))

    def prefer(self) -> None:
        self.write(*_changes(one.with_preferred_leader() for one in self.partitions))

    def lag(self, broker: int, count: int) -> None:
        following = [
            one
            for one in self.partitions
            if broker in one.isr and one.leader != broker and len(one.isr) > 1
        ]
        chosen = self._random.sample(following, min(count, len(following)))
        self.write(*_changes(one.without(broker, self.live) for one in chosen))

    def _leave(self, broker: int) -> None:
        self.live.discard(broker)
        self.write(*_changes(one.without(broker, self.live) for one in self.partitions))

    def _change(self, broker: int, *, fenced: int = 0, shutdown: int = 0) -> None:
        self.write(
            BrokerRegistrationChangeRecord(
                broker_id=broker,
                broker_epoch=self._broker_epochs[broker],
                fenced=fenced,
                in_controlled_shutdown=shutdown,
            )
        )

    # Topics and values

    def create_topic(self, name: str, partition_count: int, replica_count: int = 3) -> None:
        topic_id, live = self._id(), sorted(self.live)
        self.topics[name] = [
            PartitionState.new(
                topic_id,
                number,
                [live[(number + step) % len(live)] for step in range(replica_count)],
            )
            for number in range(partition_count)
        ]
        created = [one.record(self._directories) for one in self.topics[name]]
        self.write(TopicRecord(name=name, topic_id=topic_id), *created)

    def delete_topic(self, name: str) -> None:
        self.write(RemoveTopicRecord(topic_id=self.topics.pop(name)[0].topic_id))

    def configure(
        self, resource: str, name: str, value: str | None, kind: ResourceType = ResourceType.TOPIC
    ) -> None:
        self.write(
            ConfigRecord(resource_type=int(kind), resource_name=resource, name=name, value=value)
        )

    def permit(self, principal: str, topic: str) -> None:
        self.write(
            AccessControlEntryRecord(
                id=self._id(),
                resource_type=AclResourceType.TOPIC,
                resource_name=topic,
                pattern_type=PatternType.LITERAL,
                principal=principal,
                host=WILDCARD,
                operation=AclOperation.READ,
                permission_type=PermissionType.ALLOW,
            )
        )

    def set_password(self, user: str, secret: bytes) -> None:
        self.write(
            UserScramCredentialRecord(
                name=user,
                mechanism=int(ScramMechanism.SCRAM_SHA_256),
                salt=secret,
                stored_key=secret,
                server_key=secret,
                iterations=8192,
            )
        )

    def set_feature(self, name: str, level: int) -> None:
        self.write(FeatureLevelRecord(name=name, feature_level=level))

    def _id(self) -> bytes:
        return self._random.randbytes(16)


def _changes(changes: Iterable[Message | None]) -> Iterator[Message]:
    return (change for change in changes if change is not None)


def small_cluster() -> MadeUpCluster:
    """Return a cluster of 2 brokers with the topics a-0 (1, 2), a-1 (2, 1) and b-0 (1)."""
    cluster = MadeUpCluster(2)
    cluster.create_topic("a", 2, replica_count=2)
    cluster.create_topic("b", 1, replica_count=1)
    return cluster


def healthy_cluster() -> MadeUpCluster:
    """Return a small cluster in which little happens."""
    cluster = MadeUpCluster(3)
    cluster.later(MINUTE_MS)
    cluster.create_topic("invoices", 6)
    cluster.create_topic("payments", 3)
    cluster.later(5 * HOUR_MS)
    cluster.configure("invoices", "retention.ms", "604800000")
    cluster.later(3 * HOUR_MS)
    cluster.shut_down(2)
    cluster.later(20_000)
    cluster.start(2)
    cluster.later(10_000)
    cluster.sync(2)
    cluster.later(5 * MINUTE_MS)
    cluster.prefer()
    cluster.later(4 * HOUR_MS)
    cluster.idle()
    return cluster


def troubled_cluster() -> MadeUpCluster:
    """Return a cluster with a bad week: restarts, lost brokers, and partitions without a leader."""
    cluster = MadeUpCluster(6, seed=4)
    for controller in CONTROLLERS:
        cluster.register_controller(controller, 1)
    cluster.configure("", "min.insync.replicas", "2", ResourceType.BROKER)
    cluster.later(MINUTE_MS)
    for number, name in enumerate(_TOPICS):
        cluster.create_topic(name, 4 + 7 * number % 20)
        cluster.later(1000)
    cluster.create_topic("scratch", 5, replica_count=1)
    for day in range(6):
        _quiet_day(cluster, day)
        if day == 1:
            _two_lost_brokers(cluster)
        if day == 3:
            _rolling_restart(cluster)
    cluster.later(6 * HOUR_MS)
    _lost_at_the_end(cluster)
    return cluster


_TOPICS = (
    *("orders", "orders.retry", "payments", "payments.audit", "clicks", "sessions"),
    *("inventory", "prices", "emails", "search.index", "__consumer_offsets", "fraud.signals"),
)


def _quiet_day(cluster: MadeUpCluster, day: int) -> None:
    for hour in range(20):
        cluster.later(HOUR_MS)
        cluster.idle()
        if hour % 5 == day % 5:
            broker = 1 + (day + hour) % 6
            cluster.lag(broker, 3 + hour % 7)
            cluster.later(90_000 + 20_000 * hour)
            cluster.sync(broker)
    cluster.configure("orders", "retention.ms", str((3 + day) * 24 * HOUR_MS))
    cluster.permit(f"User:team-{day}", "orders")
    if day == 2:
        cluster.create_topic("reports", 12)
        cluster.set_password("reporter", b"not shown")
    if day == 4:
        cluster.delete_topic("reports")
        cluster.elect(CONTROLLERS[1])
        cluster.register_controller(CONTROLLERS[2], 2)


def _two_lost_brokers(cluster: MadeUpCluster) -> None:
    """Have two brokers fail one after the other, and the third replicas lag behind."""
    cluster.lag(3, 14)
    cluster.later(4 * MINUTE_MS)
    cluster.fence(4)
    cluster.elect(CONTROLLERS[2], lost=2)
    cluster.later(11 * MINUTE_MS)
    cluster.fence(5)
    cluster.later(47 * MINUTE_MS)
    cluster.start(5)
    cluster.later(2 * MINUTE_MS)
    cluster.sync(5, share=0.6)
    cluster.sync(3)
    cluster.later(26 * MINUTE_MS)
    cluster.sync(5)
    cluster.start(4)
    cluster.later(9 * MINUTE_MS)
    cluster.sync(4)
    cluster.later(5 * MINUTE_MS)
    cluster.prefer()
    cluster.later(90 * MINUTE_MS)


def _rolling_restart(cluster: MadeUpCluster) -> None:
    for broker in range(1, 7):
        cluster.shut_down(broker)
        cluster.later(40_000)
        cluster.start(broker)
        cluster.later(30_000)
        cluster.sync(broker, share=0.5)
        cluster.later(3 * MINUTE_MS)
        cluster.sync(broker)
        cluster.later(8 * MINUTE_MS)
    cluster.prefer()


def _lost_at_the_end(cluster: MadeUpCluster) -> None:
    cluster.lag(1, 9)
    cluster.later(2 * MINUTE_MS)
    cluster.fence(6)
    cluster.later(3 * MINUTE_MS)
    cluster.fence(2)
    cluster.configure("2", "ssl.keystore.password", "hunter2", ResourceType.BROKER)
    cluster.later(7 * MINUTE_MS)
    cluster.elect(CONTROLLERS[0])
    cluster.later(12 * MINUTE_MS)
    cluster.idle()
