"""One shard of the transaction coordinator (Kafka's TransactionCoordinator and its state)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from kvorum.coordinator.effects import Effects, Outbox, Promise, Timeout
from kvorum.coordinator.record import CoordinatorRecord
from kvorum.coordinator.result import Append, CoordinatorResult
from kvorum.coordinator.timeline import Timeline
from kvorum.transactions.add_partitions import WantedPartitions, verified, with_partitions
from kvorum.transactions.end_transaction import WantedEnd, aborted_by_coordinator, ended
from kvorum.transactions.init_producer_id import ExpectedProducer, initialized, new_transactional_id
from kvorum.transactions.listing import TransactionFilter, described, listed
from kvorum.transactions.settings import TransactionCoordinatorSettings
from kvorum.transactions.timeouts import (
    ExpiredTransactionalIds,
    PreparedTransaction,
    TimedOutTransaction,
    TimedOutTransactions,
)
from kvorum.transactions.transaction_log import (
    decode_record,
    metadata_of_record,
    transaction_record,
    transaction_tombstone,
)
from kvorum.transactions.transaction_metadata import TransactionMetadata, TransactionPartition
from kvorum.transactions.transaction_state import TransactionState
from kvorum.transactions.transactional_ids import TransactionalIds
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_transactions import DescribeTransactionsResponse
from kvorum.wire.messages.end_txn import EndTxnResponse
from kvorum.wire.messages.init_producer_id import InitProducerIdResponse
from kvorum.wire.messages.list_transactions import ListTransactionsResponse
from kvorum.wire.messages.transaction_log_key import TransactionLogKey
from kvorum.wire.messages.transaction_log_value import TransactionLogValue
from kvorum.wire.records.batch import NO_PRODUCER

Response = TypeVar("Response")
EXPIRATION_COMMIT_MS: Final = 30_000
"""The time in which the records that end ids have to be committed (``request.timeout.ms``)."""


@dataclass(frozen=True, slots=True)
class TransactionSurroundings:
    """The parts of a node that a shard needs.

    `generate_producer_id` raises RequestError where no id is at hand; `finalized_version` returns
    the cluster's transaction.version; `write_markers` gets a transaction whose end is committed.
    """

    generate_producer_id: Callable[[], int]
    finalized_version: Callable[[], int]
    write_markers: Callable[[TransactionMetadata], None]


@dataclass(frozen=True, slots=True)
class _PreparedAppend:
    """The append of an outcome, or the wait for it: markers follow when it is committed."""

    transactional_id: str
    on_committed: Callable[[str], None]
    on_late: Callable[[str], None]

    def completed(self, now_ms: int) -> None:
        """Have the markers written."""
        del now_ms
        self.on_committed(self.transactional_id)

    def failed(self, error: ErrorCode, now_ms: int) -> None:
        """Wait on: what is late may be committed yet. What is not in the log is not prepared."""
        del now_ms
        if error is ErrorCode.REQUEST_TIMED_OUT:
            self.on_late(self.transactional_id)


class TransactionCoordinatorShard:
    """The transactional ids of one partition of ``__transaction_state``."""

    def __init__(
        self, settings: TransactionCoordinatorSettings, surroundings: TransactionSurroundings
    ) -> None:
        self._settings = settings
        self._surroundings = surroundings
        self._outbox = Outbox()
        self.timeline = Timeline()
        self.ids = TransactionalIds(self.timeline)
        """To be read only, for metrics and tests."""

    # --- the log ---

    @property
    def needs_latest_records_alone(self) -> bool:
        """Be True: a record has all that is known of its id."""
        return True

    def load_record(
        self, offset: int, producer_id: int, key: bytes, value: bytes | None, now_ms: int
    ) -> None:
        """Decode and apply a record of the log; skip one of an unknown type.

        Raises `DamagedRecordError` for one that cannot be read.
        """
        record = decode_record(key, value)
        if record is not None:
            self.replay(offset, producer_id, record, now_ms)

    def replay(self, offset: int, producer_id: int, record: CoordinatorRecord, now_ms: int) -> None:
        """Apply a record."""
        del offset, producer_id, now_ms
        assert isinstance(record.key, TransactionLogKey)
        transactional_id = record.key.transactional_id
        if record.value is None:
            self.ids.remove(transactional_id)
            return
        assert isinstance(record.value, TransactionLogValue)
        self.ids.set(metadata_of_record(transactional_id, record.value))

    def replay_end_transaction_marker(self, producer_id: int, *, is_commit: bool) -> None:
        """Do nothing: no transaction writes to this topic."""

    def on_loaded(self, now_ms: int) -> Effects:
        """Begin to lead: markers that may be missing are written once more."""
        del now_ms
        for metadata in self.ids.all_latest():
            if metadata.state.is_prepared:
                self._outbox.set_timer(PreparedTransaction(metadata.transactional_id), 0)
        self._schedule_sweeps()
        return self._outbox.take()

    def on_unloaded(self, now_ms: int) -> Effects:
        """Cease to lead; no request has a promise here."""
        del now_ms
        return self._outbox.take()

    def append_completed(self, append: Append, now_ms: int) -> Effects:
        """Act on a result's records being committed."""
        append.completed(now_ms)
        return self._outbox.take()

    def append_failed(self, append: Append, error: ErrorCode, now_ms: int) -> Effects:
        """Act on a result's records not having come into the log, or not in time."""
        append.failed(error, now_ms)
        return self._outbox.take()

    # --- requests ---

    def init_producer_id(
        self,
        transactional_id: str,
        expected: ExpectedProducer,
        timeout_ms: int,
        now_ms: int,
    ) -> CoordinatorResult[InitProducerIdResponse]:
        """Give a producer its id and epoch; abort a transaction that is open.

        The response to the one that aborts is CONCURRENT_TRANSACTIONS, upon which it asks again.
        Raises RequestError for a request that is refused.
        """
        metadata = self._known_or_new(transactional_id, timeout_ms)
        expected.require_known_to(metadata)
        if metadata.state is TransactionState.ONGOING:
            return self._abort(
                metadata,
                now_ms,
                InitProducerIdResponse(
                    error_code=ErrorCode.CONCURRENT_TRANSACTIONS, producer_epoch=-1
                ),
            )
        following = initialized(
            metadata, expected, timeout_ms, now_ms, self._surroundings.generate_producer_id
        )
        response = InitProducerIdResponse(
            producer_id=following.producer_id, producer_epoch=following.producer_epoch
        )
        return self._step(following, response)

    def add_partitions(self, wanted: WantedPartitions, now_ms: int) -> CoordinatorResult[ErrorCode]:
        """Add partitions to a transaction, which begins with the first ones.

        Raises RequestError for a request that is refused.
        """
        following = with_partitions(self.ids, wanted, now_ms)
        if following is None:
            return CoordinatorResult(effects=Effects(), response=ErrorCode.NONE)
        return self._step(following, ErrorCode.NONE)

    def verify_partitions(
        self, wanted: WantedPartitions
    ) -> Mapping[TransactionPartition, ErrorCode]:
        """Return whether each partition is in the transaction, by a code.

        Raises RequestError for a producer that has no open transaction.
        """
        return verified(self.ids, wanted)

    def end_transaction(self, wanted: WantedEnd, now_ms: int) -> CoordinatorResult[EndTxnResponse]:
        """Decide the outcome of a transaction; the markers come after the response.

        The response has the id and epoch that the producer goes on with. Raises RequestError for
        a request that is refused.
        """
        following = ended(self.ids, wanted, now_ms, self._surroundings.generate_producer_id)
        if following is not None:
            return self._prepare(following, _end_response(following))
        metadata = self.ids.demand(wanted.transactional_id)
        return CoordinatorResult(effects=Effects(), response=_end_response(metadata))

    def complete(self, prepared: TransactionMetadata, now_ms: int) -> CoordinatorResult[bool]:
        """End a transaction whose partitions have their markers.

        The response is False where that was done before, or another outcome has come.
        """
        latest = self.ids.latest(prepared.transactional_id)
        if latest is None or not latest.has_same_end(prepared):
            return CoordinatorResult(effects=Effects(), response=False)
        return self._step(latest.complete(now_ms), True)

    def describe_transaction(
        self, transactional_id: str
    ) -> DescribeTransactionsResponse.TransactionState:
        """Describe an id; raises RequestError for one that is unknown."""
        return described(transactional_id, self.ids.committed(transactional_id))

    def list_transactions(
        self, wanted: TransactionFilter, now_ms: int
    ) -> list[ListTransactionsResponse.TransactionState]:
        """List the ids that are wanted."""
        return [
            listed(metadata)
            for metadata in self.ids.all_committed()
            if wanted.admits(metadata, now_ms)
        ]

    # --- time ---

    def on_timeout(self, timeout: Timeout, now_ms: int) -> CoordinatorResult[None]:
        """Act on a timer that has fired."""
        match timeout:
            case TimedOutTransactions():
                return self._find_timed_out(now_ms)
            case ExpiredTransactionalIds():
                return self._remove_expired(now_ms)
            case TimedOutTransaction(transactional_id):
                return self._abort_timed_out(transactional_id, now_ms)
            case PreparedTransaction(transactional_id):
                return self._wait_for_prepared(transactional_id)
            case _:
                raise TypeError(f"{timeout} is no timeout of transactions")

    def _schedule_sweeps(self) -> None:
        settings = self._settings
        self._outbox.set_timer(TimedOutTransactions(), settings.abort_timed_out_interval_ms)
        self._outbox.set_timer(ExpiredTransactionalIds(), settings.remove_expired_interval_ms)

    def _find_timed_out(self, now_ms: int) -> CoordinatorResult[None]:
        for metadata in self.ids.all_committed():
            if metadata.is_timed_out(now_ms):
                self._outbox.set_timer(TimedOutTransaction(metadata.transactional_id), 0)
        interval_ms = self._settings.abort_timed_out_interval_ms
        self._outbox.set_timer(TimedOutTransactions(), interval_ms)
        return CoordinatorResult(effects=self._outbox.take())

    def _abort_timed_out(self, transactional_id: str, now_ms: int) -> CoordinatorResult[None]:
        metadata = self.ids.committed(transactional_id)
        is_due = metadata is not None and metadata.is_timed_out(now_ms)
        if metadata is None or not is_due or self.ids.is_pending(transactional_id):
            return CoordinatorResult(effects=Effects())
        return self._abort(metadata, now_ms, None)

    def _remove_expired(self, now_ms: int) -> CoordinatorResult[None]:
        oldest_ms = now_ms - self._settings.transactional_id_expiration_ms
        expired = [
            metadata.transactional_id
            for metadata in self.ids.all_committed()
            if metadata.state.is_at_rest
            and metadata.last_update_ms <= oldest_ms
            and not self.ids.is_pending(metadata.transactional_id)
        ]
        interval_ms = self._settings.remove_expired_interval_ms
        self._outbox.set_timer(ExpiredTransactionalIds(), interval_ms)
        return CoordinatorResult(
            effects=self._outbox.take(),
            records=tuple(map(transaction_tombstone, expired)),
            is_atomic=False,
            commit_timeout_ms=EXPIRATION_COMMIT_MS,
        )

    def _wait_for_prepared(self, transactional_id: str) -> CoordinatorResult[None]:
        metadata = self.ids.latest(transactional_id)
        if metadata is None or not metadata.state.is_prepared:
            return CoordinatorResult(effects=Effects())
        return CoordinatorResult(
            effects=Effects(),
            append=self._prepared_append(transactional_id),
            commit_timeout_ms=metadata.timeout_ms,
        )

    def _prepared_append(self, transactional_id: str) -> _PreparedAppend:
        return _PreparedAppend(transactional_id, self._write_markers, self._look_again)

    def _write_markers(self, transactional_id: str) -> None:
        metadata = self.ids.latest(transactional_id)
        if metadata is not None and metadata.state.is_prepared:
            self._outbox.answer(Promise(self._surroundings.write_markers), metadata)

    def _look_again(self, transactional_id: str) -> None:
        self._outbox.set_timer(PreparedTransaction(transactional_id), 0)

    # --- steps ---

    def _known_or_new(self, transactional_id: str, timeout_ms: int) -> TransactionMetadata:
        is_known = self.ids.committed(transactional_id) is not None
        if is_known or self.ids.is_pending(transactional_id):
            return self.ids.demand(transactional_id)
        producer_id = self._surroundings.generate_producer_id()
        return new_transactional_id(transactional_id, producer_id, timeout_ms)

    def _abort(
        self, metadata: TransactionMetadata, now_ms: int, response: Response | None
    ) -> CoordinatorResult[Response]:
        surroundings = self._surroundings
        aborted = aborted_by_coordinator(
            metadata,
            surroundings.finalized_version(),
            now_ms,
            surroundings.generate_producer_id,
        )
        return self._prepare(aborted, response)

    def _prepare(
        self, prepared: TransactionMetadata, response: Response | None
    ) -> CoordinatorResult[Response]:
        append = self._prepared_append(prepared.transactional_id)
        return self._step(prepared, response, append)

    def _step(
        self,
        following: TransactionMetadata,
        response: Response | None,
        append: Append | None = None,
    ) -> CoordinatorResult[Response]:
        # A record may lack some of it, as the epoch before the latest one.
        self.ids.set(following)
        version = self._surroundings.finalized_version()
        return CoordinatorResult(
            effects=Effects(),
            response=response,
            records=(transaction_record(following, version),),
            append=append,
            replay_records=False,
            commit_timeout_ms=following.timeout_ms,
        )


def _end_response(metadata: TransactionMetadata) -> EndTxnResponse:
    """Return the id and epoch that the producer goes on with."""
    if metadata.next_producer_id != NO_PRODUCER:
        return EndTxnResponse(producer_id=metadata.next_producer_id, producer_epoch=0)
    return EndTxnResponse(producer_id=metadata.producer_id, producer_epoch=metadata.producer_epoch)
