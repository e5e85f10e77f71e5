"""The faults of a cluster: brokers end, stand still, lose touch or have bad disks.

The network and the active controller are struck too.
"""

import errno
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.topic_names import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from kvorum.simulation.disk import SimulatedDisk
from kvorum.simulation.disk_faults import METADATA_LOG_KINDS, FileKind
from kvorum.simulation.network_faults import NetworkFaults
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.broker import Broker
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.settings import (
    DEAD_LETTERS_ID,
    FAULTS_FROM_MS,
    OFFSETS_ID,
    OFFSETS_REPLICAS,
    QUIET_FROM_MS,
    SHARE_STATE_ID,
    TOPIC,
    TOPIC_ID,
    TRANSACTIONS_ID,
)
from kvorum.simulation.partitions.share_group_settings import DEAD_LETTER_QUEUE, STATE_REPLICAS
from kvorum.simulation.partitions.unclean_ends import Budget
from kvorum.simulation.properties.catalogue import PropertyViolatedError
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest

ALL_FILES: Final = tuple(FileKind)
DISK_CALLS_MAX: Final = 60
"""A process that ends at its disk does so within that many calls."""
CRASH_LOSES_POWER: Final = 0.5
SYNC_FAILS: Final = 0.5
"""The rate at which a bad disk fails to sync; else it refuses writes."""
REASSIGNMENT_IS_CANCELLED: Final = 0.5
JOINING_IS_STRUCK: Final = 0.2
NEW_LEADER_IS_STRUCK: Final = 0.2
DECIDING_IS_STRUCK: Final = 0.15
DECIDING_CUTS: Final = 0.5
"""The share of brokers that such a coordinator loses touch with."""
NEW_REPLICA_MOVES_MS_MAX: Final = 300
ENDED_LOOK_MS: Final = 10
"""The time from one look whether a process has ended to the next."""
RESTARTS_AT_ONCE: Final = 0.3
"""The share of ended processes that a supervisor starts again at once."""


class Faults:
    """Strikes brokers, the network, controllers and disks while faults may strike the quorum.

    What is planned for a disk still happens after that.
    """

    def __init__(
        self,
        around: BrokerSurroundings,
        brokers: Mapping[int, Broker],
        partitions: Mapping[int, PartitionRegistration],
    ) -> None:
        self._around, self._random = around, around.random
        self._brokers, self._partitions = brokers, partitions
        self.budget = Budget(around, partitions)
        self._quorum = around.quorum
        self._network = NetworkFaults(around.quorum)
        self._failover_random = around.random_for("controllers")
        self._planned: dict[int, bool] = {}

    def next(self) -> None:
        """Strike once, and plan the next time."""
        if not self._quorum.is_safety_phase:
            return
        broker = self._random.choice(list(self._brokers.values()))
        strikes: tuple[Callable[[Broker], None], ...] = (
            *(self._kill, self._lose_power, self._lose_power, self._stop, self._stop),
            *(self._crash_at_disk, self._crash_at_disk, self._bad_disk, self._stall),
            *(self._cut_somewhere, self._cut_somewhere, self._fail_over, self._reassign),
            self._move,
        )
        self._random.choice(strikes)(broker)
        delay_ms = self._random.expovariate(1 / self._around.settings.strike_ms)
        self._around.events.after(delay_ms, self.next)

    def on_crash(self, broker: Broker, error: BaseException) -> None:
        """Take note of a process that has ended by itself, as planned."""
        if isinstance(error, PropertyViolatedError):
            raise error
        if broker.id not in self._planned:
            raise PropertyViolatedError(promises.SOUND_DISK, f"{broker.id}: {error!r}")
        self._around.checks.held(promises.SOUND_DISK)
        # It may have been left alone since the plan was made.
        is_power_lost = self._planned[broker.id] and self.budget.has_copies(broker.id)
        self._end(broker, is_power_lost=is_power_lost)

    def _count(self, name: str, broker_id: int | None = None) -> None:
        self._around.ledger.counts[name] += 1
        where = "" if broker_id is None else f" of broker {broker_id}"
        self._around.trace.say(f"fault: {name}{where}")

    # --- ends of processes ----------------------------------------------------------------

    def _kill(self, broker: Broker) -> None:
        self.crash(broker, is_power_lost=False)

    def _lose_power(self, broker: Broker) -> None:
        self.crash(broker, is_power_lost=True)

    def crash(self, broker: Broker, *, is_power_lost: bool) -> None:
        """End a process at once, if that is within the budget."""
        if broker.is_up and self.budget.allows(broker, is_power_lost=is_power_lost):
            self._end(broker, is_power_lost=is_power_lost)

    def _end(self, broker: Broker, *, is_power_lost: bool) -> None:
        self.budget.take(broker, is_power_lost=is_power_lost)
        self._planned.pop(broker.id, None)
        broker.machine.end(is_power_cut=is_power_lost)
        self._count("power" if is_power_lost else "kill", broker.id)
        pause_ms = 60 if self._random.random() < RESTARTS_AT_ONCE else 900
        self._around.events.after(self._random.uniform(10, pause_ms), lambda: self._restart(broker))

    def _crash_at_disk(self, broker: Broker) -> None:
        """End a process in the middle of what it does with its disk."""
        is_power_lost = self._random.random() < CRASH_LOSES_POWER
        if not broker.is_up or not self.budget.allows(broker, is_power_lost=is_power_lost):
            return
        self.budget.take(broker, is_power_lost=is_power_lost)
        self._planned[broker.id] = is_power_lost
        broker.machine.crash_at_call(self._random.randint(1, DISK_CALLS_MAX))
        self._count("crash at disk", broker.id)

    def _bad_disk(self, broker: Broker) -> None:
        """Let one of its disks refuse writes, or fail to sync; its operator restarts the broker."""
        if not broker.is_up or not self.budget.allows(broker, is_power_lost=True):
            return
        self.budget.take(broker, is_power_lost=True)
        self._planned[broker.id] = False
        self._spoil(broker, self._random.choice(broker.machine.disks), ALL_FILES)

    def fail_metadata_directory(self) -> None:
        """Let the disk of a metadata log refuse writes, or fail to sync, which ends the broker."""
        broker = self._random.choice(list(self._brokers.values()))
        if not self._quorum.is_safety_phase or not broker.is_up:
            return
        if self.budget.allows(broker, is_power_lost=False):
            self.budget.take(broker, is_power_lost=False)
            self._planned[broker.id] = False
            self._count("metadata directory", broker.id)
            self._spoil(broker, broker.machine.node.disk, METADATA_LOG_KINDS)

    def _spoil(self, broker: Broker, disk: SimulatedDisk, kinds: Sequence[FileKind]) -> None:
        """Let a disk refuse writes, or fail to sync, until its operator has mended it."""
        if self._random.random() < SYNC_FAILS:
            disk.fail_next_sync(kinds)
            self._count("failed sync", broker.id)
        else:
            disk.refuse_writes(kinds, error=self._random.choice((errno.ENOSPC, errno.EIO)))
            self._count("full disk", broker.id)
        incarnation = broker.incarnation

        def repair() -> None:
            disk.forget_faults()
            if broker.is_up and broker.incarnation == incarnation:
                self._end(broker, is_power_lost=False)

        self._around.events.after(self._random.uniform(20, 400), repair)

    def _move(self, broker: Broker, wanted: TopicPartition | None = None) -> None:
        """Move a replica between the directories of a broker."""
        if broker.move_replica(wanted):
            self._count("move", broker.id)

    def move_replica(self) -> None:
        """Move a replica between the directories of some broker, until all writes end."""
        if FAULTS_FROM_MS < self._around.now_ms < QUIET_FROM_MS:
            self._move(self._random.choice(list(self._brokers.values())))

    def _stop(self, broker: Broker) -> None:
        if broker.is_up and not broker.is_stopping:
            if not broker.is_registered:
                # As in Kafka, it leaves no broker epoch that its controller would take for clean.
                if not self.budget.allows(broker, is_power_lost=False):
                    return
                self.budget.take(broker, is_power_lost=False)
            broker.stop()
            self._count("stop", broker.id)
            self._around.events.after(
                self._random.uniform(300, 1_200), lambda: self._restart(broker)
            )
            if self._around.settings.is_stormy:
                self._start_after(broker, broker.incarnation)

    def _start_after(self, broker: Broker, incarnation: int) -> None:
        """Start a broker as soon as an incarnation of it has ended."""
        if not broker.is_up:
            broker.start()
        elif broker.incarnation == incarnation:
            again = partial(self._start_after, broker, incarnation)
            self._around.events.after(ENDED_LOOK_MS, again)

    def _restart(self, broker: Broker) -> None:
        if broker.is_up and broker.is_stopping:
            # Its controlled shutdown took too long: its operator kills it, if that is bearable.
            self.crash(broker, is_power_lost=False)
        if not broker.is_up:
            broker.start()

    def start_all(self) -> None:
        """Start every broker that is down."""
        for broker in self._brokers.values():
            if not broker.is_up:
                broker.start()

    def _stall(self, broker: Broker) -> None:
        """Let a process stand still for a while, as a slow disk or a long pause does."""
        broker.machine.stall(self._random.uniform(30, 900))
        self._count("stall", broker.id)

    # --- the network and the controllers ----------------------------------------------------

    def _cut_somewhere(self, broker: Broker) -> None:
        others = [self._quorum.controller_ids, *([one] for one in self._brokers)]
        self._cut(broker.id, self._random.choice(others), self._random.uniform(50, 1_200))

    def _cut(self, broker_id: int, others: Sequence[int], duration_ms: float) -> None:
        """Cut a broker off from other nodes for a while; nothing lies between it and itself."""
        if others != [broker_id]:
            self._count("cut", broker_id)
            self._cut_off(broker_id, others, duration_ms)

    def _cut_off(self, node_id: int, others: Sequence[int], duration_ms: float) -> None:
        other_ids = [one for one in others if one != node_id]
        self._network.separate([node_id], other_ids, duration_ms)

    def _fail_over(self, _: Broker) -> None:
        self._strike_leader(self._random.uniform(50, 900))
        self._count("controller")

    def _strike_leader(self, duration_ms: float) -> None:
        """Strike the active controller, so that another one takes its place."""
        leader = self._quorum.leader()
        if leader is None or leader.process is None:
            return
        process = leader.process
        match self._failover_random.choice(("kill", "power", "pause", "resign", "cut")):
            case "kill" | "power" as how:
                leader.crash_and_restart(is_power_cut=how == "power", restart_ms=duration_ms)
            case "pause":
                # It goes on in the belief that it leads.
                leader.pause()
                self._around.events.after(duration_ms, leader.resume)
            case "resign":
                process.turn(process.resign)
            case _:
                self._cut_off(leader.node_id, self._quorum.controller_ids, duration_ms)

    def _reassign(self, _: Broker) -> None:
        self._reassign_one(TOPIC, TOPIC_ID, self._around.settings.replicas)

    def move_groups(self) -> None:
        """Request other replicas of the partition that coordinates all groups."""
        self._move_one(GROUP_METADATA_TOPIC, OFFSETS_ID, OFFSETS_REPLICAS)

    def move_transactions(self) -> None:
        """Request other replicas of a partition that coordinates transactions."""
        self._move_one(TRANSACTION_STATE_TOPIC, TRANSACTIONS_ID, OFFSETS_REPLICAS)

    def move_shares(self) -> None:
        """Request other replicas of a partition that coordinates share partitions."""
        self._move_one(SHARE_GROUP_STATE_TOPIC, SHARE_STATE_ID, STATE_REPLICAS)

    def move_dead_letters(self) -> None:
        """Request other replicas of a partition of the dead-letter queue."""
        self._move_one(DEAD_LETTER_QUEUE, DEAD_LETTERS_ID, self._around.settings.replicas)

    def _move_one(self, topic_name: str, topic_id: bytes, replica_count: int) -> None:
        """Request other replicas of a partition, while faults may strike."""
        if FAULTS_FROM_MS < self._around.now_ms < QUIET_FROM_MS:
            self._reassign_one(topic_name, topic_id, replica_count)

    def _reassign_one(self, topic_name: str, topic_id: bytes, replica_count: int) -> None:
        """Request other replicas of a partition, or cancel the reassignment under way.

        As in Kafka, a reassignment that takes back a part of another one would never end; and a
        broker that is to have a replica again while it is in the ELR may be elected without the
        records that it has deleted meanwhile.
        """
        topic_image = self._quorum.pending_image.topics.by_id.get(topic_id)
        if topic_image is None:
            return
        index, partition = self._random.choice(list(topic_image.partitions.in_order()))
        drawn = self._random.sample(sorted(self._brokers), replica_count)
        if set(drawn) & (set(partition.elr) - set(partition.replicas)):
            return
        replicas: list[int] | None = drawn
        if partition.is_reassigning:
            if self._random.random() >= REASSIGNMENT_IS_CANCELLED:
                return
            replicas = None
        requested = AlterPartitionReassignmentsRequest.ReassignablePartition(index, replicas)
        topic = AlterPartitionReassignmentsRequest.ReassignableTopic(topic_name, [requested])
        request = AlterPartitionReassignmentsRequest(topics=[topic])
        self._around.ask_leader(request, lambda _: None)
        self._count("reassignment")
        if self._around.settings.is_stormy:
            self._move_all(TopicPartition(topic_name, index), drawn)

    def _move_all(self, partition: TopicPartition, broker_ids: Sequence[int]) -> None:
        """Choose directories for the replicas of a partition, which may be made just now."""
        for broker_id in broker_ids:
            move = partial(self._move, self._brokers[broker_id], partition)
            self._around.events.after(self._random.uniform(0, NEW_REPLICA_MOVES_MS_MAX), move)

    def on_election(self, leader: int) -> None:
        """Strike a new leader now and then: it ends with records that no follower has fetched."""
        random = self._random
        if not self._quorum.is_safety_phase or random.random() > NEW_LEADER_IS_STRUCK:
            return
        self._count("struck while leading anew", leader)
        for other in self._brokers:
            self._cut(leader, [other], random.uniform(100, 400))
        broker = self._brokers[leader]
        self._around.events.after(random.uniform(30, 200), lambda: self._kill(broker))

    def on_outcome(self, coordinator: int) -> None:
        """Strike a coordinator now and then, while it decides on the outcome of a transaction.

        It loses touch with some brokers, and ends: its decision may be lost, or its markers.
        """
        random = self._random
        if not self._quorum.is_safety_phase or random.random() > DECIDING_IS_STRUCK:
            return
        self._count("struck while deciding", coordinator)
        for other in self._brokers:
            if random.random() < DECIDING_CUTS:
                self._cut(coordinator, [other], random.uniform(100, 400))
        broker = self._brokers[coordinator]
        self._around.events.after(random.uniform(10, 150), lambda: self._kill(broker))

    def on_expansion(self, leader: int, joining: int) -> float:
        """Strike at the worst moment, while a replica is about to join an ISR.

        Returns the time for which the leader's request is delayed.
        """
        random, events = self._random, self._around.events
        if not self._quorum.is_safety_phase or random.random() > JOINING_IS_STRUCK:
            return 0.0
        self._count("struck while joining", joining)
        for_ms = random.uniform(200, 900)
        match random.choice(("lose its log", "lose touch", "be late")):
            case "lose its log":
                broker = self._brokers[joining]
                events.after(random.uniform(1, 30), lambda: self._lose_power(broker))
                self._cut(joining, [random.choice(list(self._brokers))], for_ms + 500)
                return for_ms
            case "lose touch":
                # The request arrives, but its answer and the metadata records do not.
                self._cut(leader, [joining], for_ms)
                controllers = self._quorum.controller_ids
                events.after(9, lambda: self._cut(leader, controllers, for_ms))
                return 0.0
            case _:
                for other in self._brokers:
                    self._cut(joining, [other], for_ms + 500)
                return for_ms
