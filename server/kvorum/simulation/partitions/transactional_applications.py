"""Applications that write transactions under the coordinators of their brokers.

Each has a transactional id, and a group whose offsets it commits. It is started again and again;
the instance before is ended then, or is a zombie and goes on for a while.
"""

from collections.abc import Collection, Mapping
from random import Random
from typing import Final

from kvorum.coordinator.coordinator_partition import coordinator_partition
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.broker import Broker
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.groups import FIRST_STABLE_READ, GroupClient
from kvorum.simulation.partitions.ledger import Replica
from kvorum.simulation.partitions.settings import TRANSACTIONS_ID, ClusterTransactionSettings
from kvorum.simulation.partitions.stored_batches import batches_of
from kvorum.simulation.partitions.transaction_book import CoordinatedLedger, TransactionBook
from kvorum.simulation.partitions.transactional_instance import (
    OFFSETS_PARTITION,
    TRANSACTIONS_UNTIL_MS,
    TransactionalInstance,
)
from kvorum.transactions.transaction_log import (
    decode_record,
    metadata_of_record,
    transaction_record,
)
from kvorum.transactions.transaction_metadata import EPOCH_OF_EACH_TRANSACTION, TransactionMetadata
from kvorum.wire.messages.offset_fetch import OffsetFetchRequest
from kvorum.wire.messages.transaction_log_key import TransactionLogKey
from kvorum.wire.messages.transaction_log_value import TransactionLogValue

APPLICATION_COUNT: Final = 4
HAS_OWN_EPOCHS: Final = 0.7
"""The share of instances of transaction.version 2, where that is finalized."""
STARTS_AGAIN: Final = 0.006
LEAVES_ZOMBIE: Final = 0.7
IS_STUBBORN: Final = 0.5
ZOMBIE_MS_MAX: Final = 1_200
READS: Final = 0.2
STEP_MS: Final = 12


class TransactionalApplication:
    """An application with a transactional id; what it was before may go on beside it."""

    def __init__(
        self,
        around: BrokerSurroundings,
        random: Random,
        book: TransactionBook,
        settings: ClusterTransactionSettings,
        number: int,
    ) -> None:
        self._around, self._random, self._book = around, random, book
        self._settings = settings
        self._transactional_id = f"application {number}"
        self._reader = GroupClient(around, f"offsets of application {number}")
        # All reads are of stable offsets.
        self._reader.version_of(OffsetFetchRequest, lowest=FIRST_STABLE_READ)
        self._zombies: list[TransactionalInstance] = []
        self._instance = self._new_instance(0)

    @property
    def is_idle(self) -> bool:
        """Whether its last transaction has ended, as far as it can know."""
        return self._instance.is_idle

    def describe(self) -> str:
        """Return where it stands, in words."""
        return self._instance.describe()

    def step(self) -> None:
        """Go on with everything, or start again."""
        random, is_over = self._random, self._around.now_ms > TRANSACTIONS_UNTIL_MS
        if not is_over and (self._instance.is_over or random.random() < STARTS_AGAIN):
            self._start_again()
        for instance in (*self._zombies, self._instance):
            instance.step()
        coordinator = self._reader.leader()
        if random.random() < READS and coordinator is not None and not self._reader.is_waiting:
            self._reader.read(coordinator, OFFSETS_PARTITION, is_stable=True)

    def _new_instance(self, number: int) -> TransactionalInstance:
        has_version = self._settings.version >= EPOCH_OF_EACH_TRANSACTION
        return TransactionalInstance(
            self._around,
            self._random,
            self._book,
            transactional_id=self._transactional_id,
            number=number,
            group_id=self._reader.group_id,
            has_own_epochs=has_version and self._random.random() < HAS_OWN_EPOCHS,
            offsets=self._reader.ledger.offsets(OFFSETS_PARTITION),
        )

    def _start_again(self) -> None:
        former, random = self._instance, self._random
        self._instance = self._new_instance(former.number + 1)
        if former.is_over or random.random() >= LEAVES_ZOMBIE:
            former.end()
            return
        self._zombies = [one for one in self._zombies if not one.is_over]
        self._zombies.append(former)
        former.is_stubborn = random.random() < IS_STUBBORN
        self._around.events.after(random.uniform(0, ZOMBIE_MS_MAX), former.end)
        self._around.ledger.counts["coordinated: zombies"] += 1


class TransactionalApplications:
    """All such applications of a cluster, and the book of their transactions."""

    def __init__(self, around: BrokerSurroundings, settings: ClusterTransactionSettings) -> None:
        self._around = around
        self._settings = settings
        random = around.random_for("transactional applications")
        self._keeps_markers = around.settings.keeps_markers
        self._book = TransactionBook(keeps_markers=self._keeps_markers)
        self._applications = [
            TransactionalApplication(around, random, self._book, settings, number)
            for number in range(APPLICATION_COUNT)
        ]

    def ledger(self) -> CoordinatedLedger:
        """Return the transactions of one partition."""
        return CoordinatedLedger(self._around.checks, self._book, keeps_markers=self._keeps_markers)

    def begin(self) -> None:
        """Let all of them do what they do again and again."""
        for application in self._applications:
            self._around.every(STEP_MS, application.step)

    def check_end(self, brokers: Mapping[int, Broker], waiting: Collection[int]) -> None:
        """Check that all transactions have ended, unless a partition waits for someone."""
        if waiting:
            return
        checks = self._around.checks
        for application in self._applications:
            checks.demand(promises.WRITES_END, application.describe(), holds=application.is_idle)
        coordinated = [
            one for broker in brokers.values() for one in broker.coordinated_transactions()
        ]
        for metadata in coordinated:
            is_at_rest = metadata.state.is_at_rest
            checks.demand(promises.TRANSACTIONS_REST, f"{metadata}", holds=is_at_rest)
        version = self._settings.version
        known = {one.transactional_id: _logged(one, version) for one in coordinated}
        is_once = len(known) == len(coordinated)
        checks.demand(promises.ONE_TRANSACTION_STATE, f"{coordinated}", holds=is_once)
        for index in range(self._settings.partitions):
            self._check_replicas(index, brokers, known)

    def _check_replicas(
        self,
        index: int,
        brokers: Mapping[int, Broker],
        known: Mapping[str, TransactionMetadata],
    ) -> None:
        place = self._around.places.number(TRANSACTIONS_ID, index)
        expected = {
            transactional_id: metadata
            for transactional_id, metadata in known.items()
            if coordinator_partition(transactional_id, self._settings.partitions) == index
        }
        found = [broker.replica(place) for broker in brokers.values()]
        for replica in (one for one in found if one is not None):
            folded = _folded(replica)
            message = f"{replica} has {folded}, the coordinator {expected}"
            checks = self._around.checks
            checks.demand(promises.ONE_TRANSACTION_STATE, message, holds=folded == expected)


def _logged(metadata: TransactionMetadata, transaction_version: int) -> TransactionMetadata:
    """Return a state as a record of the finalized version has it."""
    value = transaction_record(metadata, transaction_version).value
    assert isinstance(value, TransactionLogValue)
    return metadata_of_record(metadata.transactional_id, value)


def _folded(replica: Replica) -> dict[str, TransactionMetadata]:
    """Return the states that the records of a replica amount to."""
    states: dict[str, TransactionMetadata] = {}
    log = replica.log
    for batch in batches_of(log, log.log_start_offset, log.stored_end_offset):
        for stored in batch.records():
            record = decode_record(stored.key or b"", stored.value)
            assert record is not None
            assert isinstance(record.key, TransactionLogKey)
            transactional_id = record.key.transactional_id
            if record.value is None:
                states.pop(transactional_id, None)
            else:
                assert isinstance(record.value, TransactionLogValue)
                states[transactional_id] = metadata_of_record(transactional_id, record.value)
    return states
