"""The state that a coordinator keeps of a transactional id (Kafka's TransactionMetadata).

Each step is a method that returns the next value, whose record is yet to be written.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self

from kvorum.transactions.transaction_state import TransactionState
from kvorum.wire.records.batch import NO_PRODUCER

NO_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
EXHAUSTED_EPOCH: Final = 32_766
"""The last epoch that a producer may have; the one after it is for the marker of its end."""
LAST_EPOCH: Final = 32_767
TWO_PHASE_TIMEOUT_MS: Final = 2**31 - 1
"""The time-out of transactions that no time ends (KIP-939)."""
EPOCH_OF_EACH_TRANSACTION: Final = 2
"""The transaction.version from which each transaction has an epoch of its own (KIP-890)."""


class TransactionPartition(NamedTuple):
    """A partition of a topic in a transaction."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    """A transactional id, its producer, and its transaction; times in milliseconds since 1970.

    `previous_producer_id` and `next_producer_id` are -1 for none, as are `start_ms` and the epoch
    before the latest one. `last_producer_epoch` is not in the log: a producer may name it in a
    request that it repeats. `client_version` is the transaction.version of the latest step.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TransactionPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    last_update_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER
    next_producer_id: int = NO_PRODUCER
    last_producer_epoch: int = NO_EPOCH
    client_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the producer needs another id before its next epoch."""
        return self.producer_epoch >= EXHAUSTED_EPOCH

    @property
    def indexes_by_topic(self) -> dict[str, list[int]]:
        """The indexes of the partitions in each topic; topics and indexes are sorted."""
        topics: dict[str, list[int]] = {}
        for topic, index in sorted(self.partitions):
            topics.setdefault(topic, []).append(index)
        return topics

    @property
    def has_epoch_of_its_own(self) -> bool:
        """Whether the step before gave the transaction an epoch of its own."""
        return self.client_version >= EPOCH_OF_EACH_TRANSACTION

    def is_timed_out(self, now_ms: int) -> bool:
        """Return whether the transaction is open for longer than its producer has asked for."""
        return (
            self.state is TransactionState.ONGOING
            and self.timeout_ms != TWO_PHASE_TIMEOUT_MS
            and self.start_ms + self.timeout_ms < now_ms
        )

    def is_retry_after_overflow(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether a request repeats the end that has given the producer another id."""
        return (
            producer_id == self.previous_producer_id
            and producer_epoch == EXHAUSTED_EPOCH
            and self.producer_epoch == 0
        )

    def has_same_end(self, other: Self) -> bool:
        """Return whether the outcome of the same transaction is decided in both."""
        return (
            self.state.is_prepared
            and self.state is other.state
            and self.producer_id == other.producer_id
            and self.producer_epoch == other.producer_epoch
            # Before EPOCH_OF_EACH_TRANSACTION the epoch is that of many transactions.
            and self.start_ms == other.start_ms
        )

    def increment_producer_epoch(
        self, timeout_ms: int, now_ms: int, *, last_producer_epoch: int
    ) -> Self:
        """Return the state of a producer that begins with the next epoch."""
        return self._initialized(
            self.producer_id,
            self.producer_epoch + 1,
            timeout_ms,
            now_ms,
            last_producer_epoch=last_producer_epoch,
        )

    def keep_producer_epoch(self, timeout_ms: int, now_ms: int) -> Self:
        """Return the state of a producer whose request repeats the one that gave it its epoch."""
        return self._initialized(
            self.producer_id,
            self.producer_epoch,
            timeout_ms,
            now_ms,
            last_producer_epoch=self.last_producer_epoch,
        )

    def rotate_producer_id(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, last_producer_epoch: int
    ) -> Self:
        """Return the state of a producer that begins again with another id."""
        return self._initialized(
            producer_id, 0, timeout_ms, now_ms, last_producer_epoch=last_producer_epoch
        )

    def _initialized(
        self,
        producer_id: int,
        producer_epoch: int,
        timeout_ms: int,
        now_ms: int,
        *,
        last_producer_epoch: int,
    ) -> Self:
        return replace(
            self,
            state=TransactionState.EMPTY,
            previous_producer_id=self.producer_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            last_producer_epoch=last_producer_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
            last_update_ms=now_ms,
        )

    def add_partitions(
        self, partitions: Iterable[TransactionPartition], client_version: int, now_ms: int
    ) -> Self:
        """Return the state with more partitions; the first ones begin the transaction."""
        return replace(
            self,
            state=TransactionState.ONGOING,
            previous_producer_id=self.producer_id,
            partitions=self.partitions.union(partitions),
            start_ms=now_ms if self.state.is_at_rest else self.start_ms,
            last_update_ms=now_ms,
            client_version=client_version,
        )

    def prepare_end(
        self, *, is_commit: bool, client_version: int, next_producer_id: int, now_ms: int
    ) -> Self:
        """Return the state with the outcome decided; `next_producer_id` is -1 for none.

        From `EPOCH_OF_EACH_TRANSACTION` on the markers have the next epoch, which is the one that
        the producer goes on with.
        """
        has_next_epoch = client_version >= EPOCH_OF_EACH_TRANSACTION
        takes_next_epoch = has_next_epoch and self.producer_epoch < LAST_EPOCH
        return replace(
            self,
            state=TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            producer_epoch=self.producer_epoch + takes_next_epoch,
            last_producer_epoch=self.producer_epoch
            if takes_next_epoch
            else self.last_producer_epoch,
            # No partition has begun it, so that its end is its only time.
            start_ms=now_ms if self.state.is_at_rest else self.start_ms,
            last_update_ms=now_ms,
            client_version=client_version,
        )

    def fence_producer(self) -> Self:
        """Return the state with the next epoch, so that the producer of this one is refused."""
        epoch = min(self.producer_epoch + 1, LAST_EPOCH)
        return replace(self, producer_epoch=epoch, last_producer_epoch=NO_EPOCH)

    def complete(self, now_ms: int) -> Self:
        """Return the state after all partitions have their markers."""
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        completed = replace(
            self,
            state=TransactionState.COMPLETE_COMMIT
            if is_commit
            else TransactionState.COMPLETE_ABORT,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER,
            partitions=frozenset(),
            last_update_ms=now_ms,
        )
        if not self.has_epoch_of_its_own or self.next_producer_id == NO_PRODUCER:
            return completed
        return replace(completed, producer_id=self.next_producer_id, producer_epoch=0)
