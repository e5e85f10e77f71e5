"""One world per seed: brokers, a controller, clients, faults, and a last phase without faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from kvorum.controller.activation_records_generator import activation_records
from kvorum.controller.periodic_tasks import (
    maybe_balance_partition_leaders,
    maybe_fence_stale_broker,
)
from kvorum.controller.result import at_once
from kvorum.controller.settings import ControllerSettings
from kvorum.metadata.bootstrap import bootstrap_from_features
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.features import ELR_VERSION_FEATURE, default_feature_levels
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.simulation.events import Events
from kvorum.simulation.partitions.broker import (
    CLUSTER_ID,
    MIN_INSYNC,
    TOPIC_ID,
    Broker,
    Surroundings,
)
from kvorum.simulation.partitions.ledger import BrokenPromiseError, Ledger
from kvorum.simulation.partitions.network import CONTROLLERS, Network
from kvorum.simulation.partitions.quorum import ControllerQuorum
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.topic_record import TopicRecord

SESSION_MS: Final = 350
FAULTS_FROM_MS: Final = 2_500
PEACE_FROM_MS: Final = 14_500
QUIET_FROM_MS: Final = 20_000
"""The end of all writes, so that the logs can be compared."""
END_MS: Final = 22_000
PARTITIONS: Final = 2


@dataclass(frozen=True, slots=True)
class PartitionsResult:
    """The result of one seed; `broken` is the claim that does not hold."""

    seed: int
    broken: str | None
    told: str
    counts: Counter[str] = field(default_factory=Counter[str])


class _Unclean(NamedTuple):
    """The unclean end of a broker's incarnation, named by its broker epoch."""

    epoch: int
    is_power_lost: bool


class PartitionsWorld:
    """Brokers whose partitions are led by the library's code, under the real controller."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)  # noqa: S311 - a simulation repeats itself
        self.events = Events()
        self.is_elr_enabled = random.random() < 0.7
        self.replicas = random.choice((2, 3, 3))
        self.network = Network(self.events, random, loss=random.choice((0.0, 0.01, 0.05)))
        self.ledger = Ledger(PARTITIONS)
        self._registrations: dict[int, PartitionRegistration] = {}
        self.quorum = ControllerQuorum(
            ControllerSettings(node_id=9, cluster_id=CLUSTER_ID, session_timeout_ms=SESSION_MS),
            events=self.events,
            random=random,
            on_commit=self._on_commit,
        )
        self.brokers: dict[int, Broker] = {}
        around = Surroundings(
            self.events,
            random,
            self.network,
            self.quorum,
            self.ledger,
            self.brokers,
            self._plan_with_who_joins,
        )
        for broker_id in range(1, self.replicas + 1):
            self.brokers[broker_id] = Broker(broker_id, around, PARTITIONS)
        self._unclean: dict[int, _Unclean] = {}
        self._values = 0
        self._is_peace = False

    def run(self) -> None:
        """Run the faults and the phase without faults; raise `BrokenPromiseError`."""
        self._activate()
        for broker in self.brokers.values():
            broker.start()
        self.events.after(1_500, self._create_topic)
        self.events.after(FAULTS_FROM_MS, self._next_fault)
        self._every(20, self._fence)
        self._every(700, self._balance)
        self._every(8, self._write)
        self._run_until(PEACE_FROM_MS)
        self._make_peace()
        self._run_until(END_MS)
        self._check_end()

    def _run_until(self, until_ms: float) -> None:
        while (callback := self.events.take_next(until_ms)) is not None:
            callback()

    def _every(self, interval_ms: float, action: Callable[[], None]) -> None:
        def again() -> None:
            action()
            self.events.after(interval_ms, again)

        self.events.after(interval_ms, again)

    # --- the cluster ----------------------------------------------------------------------

    def _activate(self) -> None:
        version = MetadataVersion.V4_3_IV0
        levels = {**default_feature_levels(version), ELR_VERSION_FEATURE: int(self.is_elr_enabled)}
        bootstrap = bootstrap_from_features(
            version, {name: level for name, level in levels.items() if level}, source="simulation"
        )
        quorum = self.quorum
        result = activation_records(MetadataImage(), bootstrap, quorum.active.settings)
        quorum.append(quorum.active, result.records, is_atomic=result.is_atomic)

    def _create_topic(self) -> None:
        """Append the topic's records directly, because its assignment is drawn here."""
        quorum, ids = self.quorum, list(self.brokers)
        records: list[RecordAndVersion] = [
            (TopicRecord(name="t", topic_id=TOPIC_ID), 0),
            (
                ConfigRecord(
                    resource_type=ResourceType.TOPIC,
                    resource_name="t",
                    name="min.insync.replicas",
                    value=str(MIN_INSYNC),
                ),
                0,
            ),
        ]
        for index in range(PARTITIONS):
            replicas = self.random.sample(ids, self.replicas)
            record = PartitionRecord(
                partition_id=index,
                topic_id=TOPIC_ID,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=[bytes([0xD0] * 15 + [one]) for one in replicas],
            )
            records.append((record, quorum.active.image.metadata_version.partition_record_version))
        quorum.append(quorum.active, tuple(records), is_atomic=True)

    def _on_commit(self, record: RecordAndVersion) -> None:
        message = record[0]
        if isinstance(message, PartitionRecord):
            topic = self.quorum.committed_image.topics.by_id[TOPIC_ID]
            self._registrations[message.partition_id] = topic.partitions[message.partition_id]
        if isinstance(message, PartitionChangeRecord):
            index = message.partition_id
            after = self.quorum.committed_image.topics.by_id[TOPIC_ID].partitions[index]
            self.ledger.on_change(self._registrations[index], after)
            self._registrations[index] = after

    def _fence(self) -> None:
        active = self.quorum.active
        result = at_once(maybe_fence_stale_broker(active.image, self.quorum.context(active, 0)))
        self.quorum.append(active, result.records, is_atomic=result.is_atomic)

    def _balance(self) -> None:
        active = self.quorum.active
        context = self.quorum.context(active, 0)
        result = at_once(maybe_balance_partition_leaders(active.image, context))
        self.quorum.append(active, result.records, is_atomic=result.is_atomic)

    def _write(self) -> None:
        """Have a client write to every broker that takes itself for the leader."""
        if self.events.now_ms > QUIET_FROM_MS:
            return
        index = self.random.randrange(PARTITIONS)
        for broker in self.brokers.values():
            self._values += 1
            if broker.write(index, self._values):
                self.ledger.counts["writes"] += 1

    # --- faults ---------------------------------------------------------------------------

    def _next_fault(self) -> None:
        if self._is_peace:
            return
        random = self.random
        broker = random.choice(list(self.brokers.values()))
        kind = random.choice(
            ("kill", "power", "power", "stop", "stop", "cut", "cut", "controller", "controller")
        )
        match kind:
            case "kill":
                self._crash(broker, is_power_lost=False)
            case "power":
                self._crash(broker, is_power_lost=True)
            case "stop":
                self._stop(broker)
            case "cut":
                other = random.choice([CONTROLLERS, *self.brokers])
                self._cut(broker.id, other, random.uniform(50, 1_500))
            case _:
                self.quorum.fail_over(zombie_ms=random.uniform(0, 800))
                self.ledger.counts["controller"] += 1
        self.events.after(random.expovariate(1 / 350), self._next_fault)

    def _crash(self, broker: Broker, *, is_power_lost: bool) -> None:
        if not broker.is_up or not self._is_bearable(broker, is_power_lost=is_power_lost):
            return
        end = _Unclean(broker.epoch, is_power_lost)
        before = self._unclean.get(broker.id)
        if before is not None and not self._is_back(broker.id, before):
            # What it lost before is still missing, also where it had not registered again.
            end = _Unclean(max(end.epoch, before.epoch), is_power_lost or before.is_power_lost)
        self._unclean[broker.id] = end
        broker.crash(is_power_lost=is_power_lost)
        self.ledger.counts["power" if is_power_lost else "kill"] += 1
        self.events.after(self.random.uniform(10, 900), lambda: self._restart(broker))

    def _is_bearable(self, broker: Broker, *, is_power_lost: bool) -> bool:
        """Return whether Kafka promises to lose nothing if `broker` ends uncleanly now.

        With a minimum of two in-sync replicas, one broker may lose its unflushed records; until it
        is back in every ISR, no other broker may end uncleanly (KIP-966). Without ELR the
        controller would let a broker lead that has lost records, so no broker loses power there.
        A broker that is only killed loses nothing: any number of them may be killed.
        """
        if is_power_lost and not self.is_elr_enabled:
            return False
        others = {one: end for one, end in self._unclean.items() if one != broker.id}
        outstanding = [end for one, end in others.items() if not self._is_back(one, end)]
        return not any(is_power_lost or end.is_power_lost for end in outstanding)

    def _is_back(self, broker_id: int, end: _Unclean) -> bool:
        registered = self.quorum.committed_image.cluster.brokers.get(broker_id)
        if registered is None or registered.epoch == end.epoch:
            return False
        return all(broker_id in partition.isr for partition in self._registrations.values())

    def _stop(self, broker: Broker) -> None:
        if broker.is_up and not broker.is_stopping:
            broker.stop()
            self.ledger.counts["stop"] += 1
            self.events.after(self.random.uniform(300, 2_000), lambda: self._restart(broker))

    def _restart(self, broker: Broker) -> None:
        if broker.is_up and broker.is_stopping:
            # Its controlled shutdown took too long: its operator kills it, if that is bearable.
            self._crash(broker, is_power_lost=False)
        if not broker.is_up:
            broker.start()

    def _cut(self, one: int, other: int, duration_ms: float) -> None:
        if one != other:
            self.network.cut(one, other)
            self.ledger.counts["cut"] += 1
            self.events.after(duration_ms, lambda: self.network.mend(one, other))

    def _plan_with_who_joins(self, leader: int, joining: int) -> float:
        """Strike at the worst moment, while a replica is about to join an ISR.

        Returns the time for which the leader's request is delayed.
        """
        if self._is_peace or self.random.random() > 0.2:
            return 0.0
        self.ledger.counts["struck while joining"] += 1
        for_ms = self.random.uniform(300, 1_500)
        match self.random.choice(("lose its log", "lose touch", "be late")):
            case "lose its log":
                broker = self.brokers[joining]
                self.events.after(
                    self.random.uniform(1, 30), lambda: self._crash(broker, is_power_lost=True)
                )
                self._cut(joining, self.random.choice(list(self.brokers)), for_ms + 500)
                return for_ms
            case "lose touch":
                # The request arrives, but its answer and the metadata records do not.
                self._cut(leader, joining, for_ms)
                self.events.after(9, lambda: self._cut(leader, CONTROLLERS, for_ms))
                return 0.0
            case _:
                for other in self.brokers:
                    self._cut(joining, other, for_ms + 500)
                return for_ms

    # --- peace ----------------------------------------------------------------------------

    def _make_peace(self) -> None:
        self._is_peace = True
        self.network.heal()
        self._every(100, self._start_all)

    def _start_all(self) -> None:
        for broker in self.brokers.values():
            if not broker.is_up:
                broker.start()

    def _check_end(self) -> None:
        for index in range(PARTITIONS):
            partition = self._registrations[index]
            if set(partition.isr) != set(partition.replicas):
                raise BrokenPromiseError("in peace everybody is in sync again", f"{partition}")
            logs = [self.brokers[one].logs[index] for one in partition.replicas]
            self.ledger.check_end(index, logs)


def run_partitions_seed(seed: int) -> PartitionsResult:
    """Run one world and return its result."""
    world = PartitionsWorld(seed)
    broken, told = None, ""
    try:
        world.run()
    except BrokenPromiseError as error:
        broken, told = error.claim, str(error)
    return PartitionsResult(seed, broken, told, world.ledger.counts)
