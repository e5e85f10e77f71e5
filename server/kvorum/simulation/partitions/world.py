"""One world per seed: brokers, a controller, clients, faults, and a last phase without faults."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random
from typing import Final

from kvorum.broker.partition import ALL_IN_SYNC
from kvorum.controller.api import ControllerResult, Pieces
from kvorum.controller.periodic_tasks import (
    maybe_balance_partition_leaders,
    maybe_elect_unclean_leaders,
    maybe_fence_stale_broker,
)
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.features import (
    ELR_VERSION_FEATURE,
    KRAFT_VERSION_FEATURE,
    kafka_feature_levels,
)
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import LATEST_PRODUCTION_METADATA_VERSION
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.topic_names import GROUP_METADATA_TOPIC
from kvorum.simulation.events import WALL_START_MS, Events
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.broker import Broker
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.clients import LEADER_ONLY, Consumer, Deleter, Producer
from kvorum.simulation.partitions.faults import Faults
from kvorum.simulation.partitions.group_members import GroupMembers
from kvorum.simulation.partitions.groups import Committer
from kvorum.simulation.partitions.ledger import PartitionLedger, Replica
from kvorum.simulation.partitions.pipelined_producer import PIPELINED_ID, PipelinedProducer
from kvorum.simulation.partitions.places import Places
from kvorum.simulation.partitions.promises import is_unclean, waits_for_an_operator
from kvorum.simulation.partitions.quorum import ControllerQuorum, PeriodicTask
from kvorum.simulation.partitions.session_consumer import SessionConsumer
from kvorum.simulation.partitions.settings import (
    END_MS,
    FAULTS_FROM_MS,
    FIRST_CLIENT_ID,
    HAS_FAILING_METADATA_DIRECTORIES,
    HAS_FETCH_SESSIONS,
    HAS_OLDER_CLIENTS,
    HAS_PIPELINES,
    HAS_SHORT_LIVED_TOPIC,
    METADATA_DIRECTORY_FAILS_MS,
    MOVE_IN_STORM_MS,
    OFFSETS_ID,
    OFFSETS_REPLICAS,
    PAUSE_AT_MS,
    PEACE_FROM_MS,
    ROOTS,
    TOPIC,
    TOPIC_ID,
    WorldSettings,
    directory_id,
)
from kvorum.simulation.partitions.short_lived_topic import ShortLivedTopic
from kvorum.simulation.partitions.transactions import (
    CommittedConsumer,
    TransactionalCommitter,
    TransactionalProducer,
    TransactionLedger,
)
from kvorum.simulation.properties.catalogue import PropertyViolatedError
from kvorum.simulation.surroundings import random_for
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message
from kvorum.wire.records.batch import INT32_MAX


def first_records(
    settings: WorldSettings, broker_ids: Sequence[int], random: Random
) -> PeriodicTask:
    """Return what an active controller does until the cluster has its features and topics.

    The topics' records are written directly, because their assignments are drawn here.
    """
    # The levels are those of real coordinators of transactions, whose part clients play here.
    levels = {
        **kafka_feature_levels(LATEST_PRODUCTION_METADATA_VERSION),
        ELR_VERSION_FEATURE: int(settings.is_elr_enabled),
    }
    # Control records of the log have that one.
    levels.pop(KRAFT_VERSION_FEATURE, None)
    topics = (
        *_topic_records(TOPIC, TOPIC_ID, settings.topic_configs(TOPIC)),
        *_partition_records(TOPIC_ID, settings.partitions, settings.replicas, broker_ids, random),
        *_topic_records(
            GROUP_METADATA_TOPIC, OFFSETS_ID, settings.topic_configs(GROUP_METADATA_TOPIC)
        ),
        *_partition_records(OFFSETS_ID, 1, OFFSETS_REPLICAS, broker_ids, random),
    )

    def task(image: MetadataImage, _: ControllerRequestContext) -> Pieces[ControllerResult[bool]]:
        yield from ()
        features = [
            (FeatureLevelRecord(name=name, feature_level=level), 0)
            for name, level in levels.items()
            if image.features.level(name) != level
        ]
        has_brokers = all(one in image.cluster.brokers for one in broker_ids)
        if features or not has_brokers or TOPIC_ID in image.topics.by_id:
            return ControllerResult(False, tuple(features))
        return ControllerResult(False, topics)

    return task


def _topic_records(
    name: str, topic_id: bytes, configs: Mapping[str, str]
) -> list[RecordAndVersion]:
    records = [
        ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=name, name=key, value=value)
        for key, value in configs.items()
    ]
    return [(TopicRecord(name=name, topic_id=topic_id), 0), *((record, 0) for record in records)]


def _partition_records(
    topic_id: bytes, count: int, replica_count: int, broker_ids: Sequence[int], random: Random
) -> list[RecordAndVersion]:
    version = LATEST_PRODUCTION_METADATA_VERSION.partition_record_version
    records: list[RecordAndVersion] = []
    for index in range(count):
        replicas = random.sample(broker_ids, replica_count)
        record = PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=[directory_id(one, random.randrange(len(ROOTS))) for one in replicas],
        )
        records.append((record, version))
    return records


PAUSE_MS: Final = 240
"""Longer than ``replica.lag.time.max.ms``, and no reason yet to fence the broker."""
_CONTROLLER_TASKS = (
    (maybe_fence_stale_broker, 20),
    (maybe_balance_partition_leaders, 700),
    (maybe_elect_unclean_leaders, 150),
)
"""The periods of an active controller's own tasks, in milliseconds."""

MEMBERS_GROUP = "readers"


class IdlePartitions:
    """The partitions that were idle, and had all replicas in sync, when a broker was paused."""

    def __init__(
        self,
        around: BrokerSurroundings,
        brokers: Mapping[int, Broker],
        partitions: Mapping[int, PartitionRegistration],
    ) -> None:
        self._around, self._brokers, self._partitions = around, brokers, partitions
        self._ends: dict[int, set[int]] = {}

    def pause_broker(self) -> None:
        """Let a broker stand still, and watch the ISRs from now on."""
        for index in range(self._around.settings.partitions):
            partition = self._partitions[index]
            if set(partition.isr) == set(partition.replicas):
                self._ends[index] = self._ends_of(index)
        self._around.random.choice(list(self._brokers.values())).machine.stall(PAUSE_MS)

    def on_change(self, index: int, before: PartitionRegistration) -> None:
        """Check a change; one without an election takes no replica out of the ISR."""
        after = self._partitions[index]
        is_idle = len(self._ends.get(index, ())) == 1 and self._ends_of(index) == self._ends[index]
        if not is_idle or after.leader_epoch != before.leader_epoch:
            return
        known = self._around.quorum.committed_image.cluster.brokers
        for member in set(before.isr) - set(after.isr):
            if member in known and not known[member].is_fenced:
                raise PropertyViolatedError(promises.IDLE_STAY_IN_SYNC, f"{before} became {after}")

    def check_end(self) -> None:
        """Count the partitions that were watched: what takes a replica out is seen as it comes."""
        self._around.checks.held(*[promises.IDLE_STAY_IN_SYNC] * len(self._ends))

    def _ends_of(self, index: int) -> set[int]:
        """Return the offsets at which the logs of a partition end that can be read."""
        replicas = [self._brokers[one].replica(index) for one in self._partitions[index].replicas]
        return {one.log.stored_end_offset for one in replicas if one is not None}


@dataclass(frozen=True, slots=True)
class PartitionsResult:
    """The result of one seed; `broken` is the property that does not hold, in words.

    `checks` has how often each property held, by its id, those of the quorum too. `digest` is a
    hash of the run, which another run of the seed must have too.
    """

    seed: int
    broken: str | None
    message: str
    counts: Counter[str]
    checks: Mapping[str, int]
    digest: str
    trace: tuple[str, ...]


class PartitionsWorld:
    """Brokers whose replicas are the library's, under the real controller."""

    def __init__(self, seed: int, *, is_trace_kept: bool = False) -> None:
        self.random = random = Random(seed)  # noqa: S311 - a simulation repeats itself
        self.events = Events()
        self._seed = seed
        storm = random_for(seed, "storm")
        releases = random_for(seed, "api versions")
        has_older_clients = releases.random() < HAS_OLDER_CLIENTS
        self.settings = settings = WorldSettings.draw(random, storm)
        self.ledger = PartitionLedger(self._in_sync, settings)
        self.places = Places(settings.partitions)
        self._registrations: dict[int, PartitionRegistration] = {}
        self.quorum = ControllerQuorum(
            seed,
            broker_count=settings.brokers,
            events=self.events,
            on_commit=self._on_commit,
            is_trace_kept=is_trace_kept,
            conditions=settings.conditions,
        )
        self.brokers: dict[int, Broker] = {}
        around = BrokerSurroundings(
            settings,
            self.events,
            random,
            Random(f"{seed} disks"),  # noqa: S311 - a simulation repeats itself
            self.quorum.requests,
            count(FIRST_CLIENT_ID, -1),
            self.quorum,
            self.ledger,
            self.places,
            self.brokers,
            {},
            releases if has_older_clients else None,
            self._on_expansion,
        )
        self._faults = Faults(around, self.brokers, self._registrations)
        self._idle = IdlePartitions(around, self.brokers, self._registrations)
        for node in self.quorum.broker_nodes:
            self.brokers[node.node_id] = Broker(node, around, self._faults.on_crash)
        self._make_clients(around)
        has_sessions = random_for(seed, "fetch sessions").random() < HAS_FETCH_SESSIONS
        self._session_consumers = [SessionConsumer(around) for _ in range(2 * has_sessions)]
        topics = random_for(seed, "topics that come and go")
        has_short_lived_topic = topics.random() < HAS_SHORT_LIVED_TOPIC
        self._short_lived_topic = ShortLivedTopic(around, topics) if has_short_lived_topic else None

    def _make_clients(self, around: BrokerSurroundings) -> None:
        random, settings = self.random, self.settings
        self._producers: list[Producer] = [
            producer
            for index in range(settings.partitions)
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
        pipelines = random_for(self._seed, "several batches in flight")
        if pipelines.random() < HAS_PIPELINES:
            self._producers += [
                PipelinedProducer(
                    around,
                    index,
                    producer_id=PIPELINED_ID + index,
                    first_sequence=pipelines.choice((0, INT32_MAX - 20)),
                )
                for index in range(settings.partitions)
            ]
        self._transactions = [
            TransactionLedger(self.ledger.checks, keeps_markers=settings.keeps_markers)
            for _ in range(settings.partitions)
        ]
        self._producers += [
            TransactionalProducer(around, index, ledger)
            for index, ledger in enumerate(self._transactions)
        ]
        self._consumers = [
            consumer
            for index, ledger in enumerate(self._transactions)
            for consumer in (Consumer(around, index), CommittedConsumer(around, index, ledger))
        ]
        self._committers: list[Committer | TransactionalCommitter] = [
            Committer(around, "group 0", None),
            Committer(around, "group 1", "instance"),
            TransactionalCommitter(around, "workers"),
        ]
        self._group_members = GroupMembers(around, MEMBERS_GROUP)
        self._deleters = [Deleter(around, index) for index in range(settings.partitions)]

    def run(self) -> None:
        """Run the faults and the phase without faults; raise `PropertyViolatedError`."""
        self.quorum.begin()
        for broker in self.brokers.values():
            broker.start()
        self.events.after(FAULTS_FROM_MS, self._faults.next)
        first = first_records(self.settings, list(self.brokers), self.random)
        for task, interval_ms in ((first, 20), *_CONTROLLER_TASKS):
            self._every(interval_ms, partial(self.quorum.run, task))
        self._begin_clients()
        self._begin_failures_of_metadata_directories()
        self.events.run_until(PEACE_FROM_MS)
        self._make_peace()
        self.events.run_until(END_MS)
        self._check_end()

    def _begin_failures_of_metadata_directories(self) -> None:
        directories = random_for(self._seed, "metadata log directories")
        if directories.random() < HAS_FAILING_METADATA_DIRECTORIES:
            self._every(METADATA_DIRECTORY_FAILS_MS, self._faults.fail_metadata_directory)

    def _begin_clients(self) -> None:
        """Let clients and operators do what they do again and again."""
        for producer in self._producers:
            self._every(24, producer.step)
        for consumer in self._consumers:
            self._every(40, consumer.step)
        for session_consumer in self._session_consumers:
            self._every(40, session_consumer.step)
        for committer in self._committers:
            self._every(40, committer.step)
        for member in self._group_members.members:
            self._every(40, member.step)
        if self._short_lived_topic is not None:
            self._every(30, self._short_lived_topic.step)
        self._every(1_000, self._group_members.step)
        self._every(350, self._faults.move_groups)
        if self.settings.is_stormy:
            self._every(MOVE_IN_STORM_MS, self._faults.move_replica)
        for deleter in self._deleters:
            self._every(400, deleter.step)

    def _every(self, interval_ms: float, action: Callable[[], None]) -> None:
        def again() -> None:
            action()
            self.events.after(interval_ms, again)

        self.events.after(interval_ms * self.random.uniform(0.5, 1.5), again)

    def _on_commit(self, message: Message) -> None:
        if isinstance(message, RemoveTopicRecord):
            self._forget_topic(message.topic_id)
        if not isinstance(message, PartitionRecord | PartitionChangeRecord):
            return
        topic = self.quorum.committed_image.topics.by_id[message.topic_id]
        after = topic.partitions[message.partition_id]
        index = self.places.number(topic.id, message.partition_id)
        before = self._registrations.get(index)
        self._registrations[index] = after
        self.quorum.trace.say(
            f"partition {index}: leader {after.leader} in epoch {after.leader_epoch}, "
            f"ISR {list(after.isr)}, ELR {list(after.elr)}"
        )
        if before is not None:
            self.ledger.on_change(before, after)
            self._idle.on_change(index, before)
            if after.has_leader and after.leader != before.leader:
                self._faults.on_election(after.leader)
            is_allowed = topic.id == TOPIC_ID and self.settings.is_unclean_enabled
            if is_allowed and is_unclean(before, after):
                self.ledger.on_unclean_election(index, after.leader_epoch)

    def _forget_topic(self, topic_id: bytes) -> None:
        for place in list(self._registrations):
            if self.places.partition(place)[0] == topic_id:
                del self._registrations[place]

    def _on_expansion(self, leader: int, joining: int) -> float:
        return self._faults.on_expansion(leader, joining)

    def _in_sync(self, index: int) -> list[Replica]:
        """Return the in-sync replicas that can be looked at, and may not lack anything."""
        registration = self._registrations.get(index)
        # A broker that does not know yet of a topic's deletion still appends to its log.
        members = () if registration is None else registration.isr
        replicas = [
            self.brokers[member].replica(index)
            for member in members
            if not self._faults.budget.has_lost_records(member)
        ]
        return [replica for replica in replicas if replica is not None]

    def _make_peace(self) -> None:
        self._faults.is_over = True
        self.quorum.heal()
        self.events.at(PAUSE_AT_MS, self._idle.pause_broker)
        self._every(100, self.quorum.look)
        self._every(100, self._faults.start_all)

    def _check_end(self) -> None:
        self.quorum.end()
        self._idle.check_end()
        if self._short_lived_topic is not None:
            self._short_lived_topic.check_end(list(self.brokers.values()))
        waiting = {
            index for index, one in self._registrations.items() if waits_for_an_operator(one)
        }
        self.ledger.counts["waits for an operator"] += len(waiting)
        checks = self.ledger.checks
        for producer in self._producers:
            if producer.index not in waiting:
                checks.demand(promises.WRITES_END, producer.describe(), holds=producer.is_idle)
        if self.places.number(OFFSETS_ID, 0) not in waiting:
            self._check_groups()
        for index, partition in self._registrations.items():
            if index in waiting:
                continue
            is_in_sync = set(partition.isr) == set(partition.replicas)
            is_settled = is_in_sync and not partition.is_reassigning
            checks.demand(promises.ALL_IN_SYNC_AGAIN, f"{partition}", holds=is_settled)
            replicas = [self.brokers[one].replica(index) for one in partition.replicas]
            known = [one for one in replicas if one is not None]
            is_readable = len(known) == len(replicas)
            checks.demand(promises.ALL_READABLE, f"{partition}", holds=is_readable)
            has_sequences = self.places.partition(index)[0] != OFFSETS_ID
            wall_ms = WALL_START_MS + self.settings.old_until_ms
            self.ledger.check_end(index, known, wall_ms=wall_ms, has_sequences=has_sequences)
            if index < len(self._transactions) and not self.ledger.is_exempt(index):
                for replica in known:
                    self._transactions[index].check_end(replica)

    def _check_groups(self) -> None:
        checks = self.ledger.checks
        for committer in self._committers:
            checks.demand(promises.COMMITS_END, committer.describe(), holds=committer.is_idle)
        for member in self._group_members.members:
            is_settled = member.is_stable or member.is_over
            checks.demand(promises.MEMBERS_SETTLE, member.describe(), holds=is_settled)
        listed = Counter(
            group_id for broker in self.brokers.values() for group_id in broker.listed_groups()
        )
        is_alone = listed[MEMBERS_GROUP] == 1
        checks.demand(promises.ONE_COORDINATOR, f"{listed}", holds=is_alone)


def run_partitions_seed(seed: int, *, is_traced: bool = False) -> PartitionsResult:
    """Run one world and return its result; `trace` is empty unless it is asked for."""
    world = PartitionsWorld(seed, is_trace_kept=is_traced)
    broken, message = None, ""
    try:
        world.run()
    except PropertyViolatedError as error:
        broken, message = error.broken.meaning, str(error)
    except Exception as error:  # noqa: BLE001 - every end of a seed is reported with its number
        broken, message = "defect", f"{type(error).__name__}: {error}"
    counts, trace = world.ledger.counts, world.quorum.trace
    trace.say(repr((message, sorted(counts.items()))))
    counts.update({f"controllers: {kind.value}": n for kind, n in world.quorum.faults.items()})
    checks = {**world.quorum.checks, **world.ledger.checks.counts}
    return PartitionsResult(seed, broken, message, counts, checks, trace.digest, tuple(trace.lines))
