"""The inhabitants of a world with brokers: those, their clients and operators, and the ledgers."""

from collections.abc import Mapping
from functools import partial
from itertools import count
from random import Random
from typing import Final

from kvorum.metadata.partition import PartitionRegistration
from kvorum.simulation.events import WALL_START_MS
from kvorum.simulation.partitions import history_check, promises
from kvorum.simulation.partitions.applications import Applications
from kvorum.simulation.partitions.broker import Broker
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.client_history import ClientHistory
from kvorum.simulation.partitions.closing_connection import HAS_CLOSING_CLIENTS
from kvorum.simulation.partitions.controller_tasks import CONTROLLER_TASKS, run_task
from kvorum.simulation.partitions.faults import Faults
from kvorum.simulation.partitions.first_records import first_records
from kvorum.simulation.partitions.history_check import WrittenHistory
from kvorum.simulation.partitions.idle_partitions import IdlePartitions
from kvorum.simulation.partitions.ledger import PartitionLedger, Replica
from kvorum.simulation.partitions.login_book import LoginBook
from kvorum.simulation.partitions.login_settings import LoginSettings
from kvorum.simulation.partitions.places import Places
from kvorum.simulation.partitions.promises import is_unclean, waits_for_an_operator
from kvorum.simulation.partitions.settings import (
    FAULTS_FROM_MS,
    FIRST_CLIENT_ID,
    HAS_FAILING_METADATA_DIRECTORIES,
    HAS_OLDER_CLIENTS,
    METADATA_DIRECTORY_FAILS_MS,
    MOVE_IN_STORM_MS,
    OFFSETS_ID,
    PAUSE_AT_MS,
    TOPIC_ID,
    TRANSACTIONS_ID,
    ClusterSettings,
)
from kvorum.simulation.partitions.transactions import demand_stable
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.simulation.requests import Requests
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.primitives import Message

MOVE_TRANSACTIONS_MS: Final = 900
MOVE_SHARES_MS: Final = 1_500
MOVE_DEAD_LETTERS_MS: Final = 1_500
MOVE_GROUPS_MS: Final = 350
MOVE_GROUPS_OF_SHARES_MS: Final = 1_500
"""The same with a share group: its members get records once two coordinators agree."""
LOOK_MS: Final = 100
"""The time from one look at all brokers to the next, once nothing fails any more."""
_NOTHING_FAILED: Final = ""
"""The failure of a run that has none, in the last line of its trace."""


class Cluster:
    """Brokers whose replicas are the library's, under the real controller."""

    def __init__(
        self, quorum: SimulatedQuorum, *, settings: ClusterSettings, random: Random
    ) -> None:
        world = quorum.around
        checks = world.properties.checks
        checks.include(promises.ALL)
        self.settings = settings
        self.ledger = PartitionLedger(self._in_sync, settings, checks)
        self.brokers: dict[int, Broker] = {}
        self._quorum = quorum
        self._registrations: dict[int, PartitionRegistration] = {}
        world.committed.listeners.append(self._on_commit)
        releases = world.random_for("api versions")
        has_older_clients = releases.random() < HAS_OLDER_CLIENTS
        logins = LoginSettings.draw(world.random_for("clients that log in"))
        closing = world.random_for("connections that are closed")
        self._around = around = BrokerSurroundings(
            settings,
            random,
            Random(f"{world.seed} disks"),  # noqa: S311 - a simulation repeats itself
            Requests(world.network, world.events),
            count(FIRST_CLIENT_ID, -1),
            quorum,
            self.ledger,
            ClientHistory(lambda: world.now_ms, settings.partitions),
            Places(settings.partitions),
            self.brokers,
            {},
            {},
            {},
            releases if has_older_clients else None,
            None if logins is None else LoginBook(logins, world.committed),
            closing if closing.random() < HAS_CLOSING_CLIENTS else None,
            self._on_expansion,
            self._on_outcome,
        )
        self.history = around.history
        self._faults = Faults(around, self.brokers, self._registrations)
        self._idle = IdlePartitions(around, self.brokers, self._registrations)
        for node in quorum.brokers():
            self.brokers[node.node_id] = Broker(node, around, self._faults.on_crash)
        self._applications = Applications(around)

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of times that things happened to brokers and clients."""
        return self.ledger.counts

    # --- the run ---

    def begin(self) -> None:
        """Start the brokers, and all that happens again and again."""
        around = self._around
        for broker in self.brokers.values():
            broker.start()
        around.events.after(FAULTS_FROM_MS, self._faults.next)
        first = first_records(self.settings, list(self.brokers), around.random)
        for task, interval_ms in ((first, 20), *CONTROLLER_TASKS):
            around.every(interval_ms, partial(run_task, self._quorum, task))
        self._applications.begin()
        self._begin_operators()
        directories = around.random_for("metadata log directories")
        if directories.random() < HAS_FAILING_METADATA_DIRECTORIES:
            around.every(METADATA_DIRECTORY_FAILS_MS, self._faults.fail_metadata_directory)

    def _begin_operators(self) -> None:
        every = self._around.every
        share = self.settings.groups.share
        has_shares = share is not None
        every(MOVE_GROUPS_OF_SHARES_MS if has_shares else MOVE_GROUPS_MS, self._faults.move_groups)
        if self.settings.transactions is not None:
            every(MOVE_TRANSACTIONS_MS, self._faults.move_transactions)
        if has_shares:
            every(MOVE_SHARES_MS, self._faults.move_shares)
        if share is not None and share.dead_letter_queue is not None:
            every(MOVE_DEAD_LETTERS_MS, self._faults.move_dead_letters)
        if self.settings.is_stormy:
            every(MOVE_IN_STORM_MS, self._faults.move_replica)
        if self.settings.deletes_records:
            for deleter in self._applications.deleters:
                every(400, deleter.step)

    def settle(self) -> float:
        """Start brokers that are down, and pause one later; draw the time to the first look."""
        around = self._around
        around.events.at(PAUSE_AT_MS, self._idle.pause_broker)
        first_look_ms = around.first_ms(LOOK_MS)
        around.every(LOOK_MS, self._faults.start_all)
        return first_look_ms

    # --- the committed metadata ---

    def _on_commit(self, message: Message) -> None:
        if isinstance(message, RemoveTopicRecord):
            self._forget_topic(message.topic_id)
        if not isinstance(message, PartitionRecord | PartitionChangeRecord):
            return
        around = self._around
        topic = around.committed_image.topics.by_id[message.topic_id]
        after = topic.partitions[message.partition_id]
        index = around.places.number(topic.id, message.partition_id)
        before = self._registrations.get(index)
        self._registrations[index] = after
        around.trace.say(
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
            if self._around.places.partition(place)[0] == topic_id:
                del self._registrations[place]

    def _on_expansion(self, leader: int, joining: int) -> float:
        return self._faults.on_expansion(leader, joining)

    def _on_outcome(self, coordinator: int) -> None:
        self._faults.on_outcome(coordinator)

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

    # --- the end ---

    def check_end(self) -> None:
        """Check that clients have come to an end, and that all replicas have the same."""
        self._idle.check_end()
        waiting = self._waiting_for_an_operator()
        ledger = self.ledger
        counts = ledger.counts
        counts["waits for an operator"] += len(waiting)
        self._applications.check_end(self.brokers, waiting)
        have_ended = self._transactions_end()
        for index, partition in self._registrations.items():
            if index not in waiting:
                self._check_partition(index, partition)
                if have_ended:
                    self._check_transactions(index, partition)
        self.read_to_the_end()
        history_check.check(self.histories(), ledger.checks)
        self._around.trace.say(repr((_NOTHING_FAILED, sorted(counts.items()))))

    @property
    def left_out(self) -> set[int]:
        """The partitions that the history of the clients is judged without."""
        indexes = range(self.settings.partitions)
        return {
            index
            for index in indexes
            if self.ledger.is_exempt(index)
            or index not in self._registrations
            or waits_for_an_operator(self._registrations[index])
        }

    def read_to_the_end(self) -> None:
        """Read all replicas of the topic that stays, as the last consumers of a history."""
        for index in range(self.settings.partitions):
            for broker in self.brokers.values():
                replica = broker.replica(index)
                if replica is not None:
                    history_check.read_to_the_end(self.history, replica)

    def histories(self) -> tuple[WrittenHistory, ...]:
        """Return the history of the consumers of each isolation level."""
        return history_check.written(
            self.history,
            self.settings,
            self.left_out,
            transactions_end=self._transactions_end(),
        )

    def _waiting_for_an_operator(self) -> set[int]:
        """Return the partitions that no broker may lead without an operator's word."""
        registrations = self._registrations.items()
        return {index for index, one in registrations if waits_for_an_operator(one)}

    def _transactions_end(self) -> bool:
        """Return whether every transaction has a coordinator, without which it stays open."""
        topics = map(self._around.places.partition, self._waiting_for_an_operator())
        return all(topic_id != TRANSACTIONS_ID for topic_id, _ in topics)

    def _check_partition(self, index: int, partition: PartitionRegistration) -> None:
        ledger = self.ledger
        checks = ledger.checks
        is_in_sync = set(partition.isr) == set(partition.replicas)
        is_settled = is_in_sync and not partition.is_reassigning
        checks.demand(promises.ALL_IN_SYNC_AGAIN, f"{partition}", holds=is_settled)
        replicas = [self.brokers[one].replica(index) for one in partition.replicas]
        known = [one for one in replicas if one is not None]
        is_readable = len(known) == len(replicas)
        checks.demand(promises.ALL_READABLE, f"{partition}", holds=is_readable)
        has_sequences = self._around.places.partition(index)[0] != OFFSETS_ID
        wall_ms = WALL_START_MS + self.settings.old_until_ms
        ledger.check_end(index, known, wall_ms=wall_ms, has_sequences=has_sequences)

    def _check_transactions(self, index: int, partition: PartitionRegistration) -> None:
        replicas = [self.brokers[one].replica(index) for one in partition.replicas]
        known = [one for one in replicas if one is not None]
        transactions = self._applications.transactions
        if index < len(transactions) and not self.ledger.is_exempt(index):
            for replica in known:
                transactions[index].check_end(replica)
        if index >= len(transactions):
            for replica in known:
                demand_stable(replica, self.ledger.checks)
