"""Batches that begin a transaction: appended with the guard of their verification alone."""

import pytest
from tests.unit.storage.topic_logs import batch_of, marker

from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.producer_state import ProducerError, ProducerState
from kvorum.storage.log.verification_state import TransactionAppend, VerificationGuard
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import ControlRecordType, RecordBatch, RecordData

PRODUCER = 7
EXPIRATION_MS = 1000


class Log:
    """A log whose transactional batches have to be verified."""

    def __init__(self) -> None:
        self.state = ProducerState(EXPIRATION_MS)

    def start(
        self, *, epoch: int = 0, sequence: int = 0, is_second_version: bool = False, now_ms: int = 0
    ) -> VerificationGuard | None:
        return self.state.maybe_start_transaction_verification(
            PRODUCER,
            sequence=sequence,
            epoch=epoch,
            supports_epoch_bump=is_second_version,
            now_ms=now_ms,
        )

    def write(
        self,
        guard: VerificationGuard | None,
        *,
        sequence: int = 0,
        epoch: int = 0,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        must_be_verified: bool = True,
    ) -> ErrorCode:
        batch = batch_of(
            RecordData(b"v", None, 5),
            base_offset=self.state.end_offset,
            producer_id=PRODUCER,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        transaction = TransactionAppend(guard, must_be_verified=must_be_verified)
        return self._append(batch, origin, transaction)

    def end(self, *, epoch: int = 0, version: int = 1) -> ErrorCode:
        batch = marker(
            ControlRecordType.ABORT,
            base_offset=self.state.end_offset,
            producer_id=PRODUCER,
            producer_epoch=epoch,
        )
        transaction = TransactionAppend(transaction_version=version)
        return self._append(batch, AppendOrigin.COORDINATOR, transaction)

    def _append(
        self, batch: RecordBatch, origin: AppendOrigin, transaction: TransactionAppend
    ) -> ErrorCode:
        try:
            ended = self.state.append(batch, origin, transaction)
        except ProducerError as error:
            return error.code
        if ended is not None:
            self.state.complete(ended)
        return ErrorCode.NONE


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.mark.parametrize("origin", [AppendOrigin.CLIENT, AppendOrigin.COORDINATOR])
def test_the_first_batch_of_a_transaction_needs_its_guard(log: Log, origin: AppendOrigin) -> None:
    assert log.write(None, origin=origin) is ErrorCode.INVALID_TXN_STATE
    guard = log.start()
    assert guard is not None
    assert log.write(None, origin=origin) is ErrorCode.INVALID_TXN_STATE
    assert log.write(VerificationGuard(), origin=origin) is ErrorCode.INVALID_TXN_STATE
    assert log.write(guard, origin=origin) is ErrorCode.NONE
    assert log.start() is None, "the transaction is open"
    assert log.write(None, sequence=1, origin=origin) is ErrorCode.NONE


def test_nothing_has_to_be_verified_where_that_is_switched_off_or_a_leader_has_done_it() -> None:
    assert Log().write(None, must_be_verified=False) is ErrorCode.NONE
    assert Log().write(None, origin=AppendOrigin.REPLICATION) is ErrorCode.NONE


def test_batches_that_wait_at_the_same_time_have_one_guard(log: Log) -> None:
    assert log.start(sequence=0) is log.start(sequence=3)


def test_a_marker_between_verification_and_append_makes_the_guard_void(log: Log) -> None:
    guard = log.start()
    assert log.end() is ErrorCode.NONE
    assert log.write(guard) is ErrorCode.INVALID_TXN_STATE
    again = log.start()
    assert again is not guard
    assert log.write(guard) is ErrorCode.INVALID_TXN_STATE, "the answer was about another one"
    assert log.write(again) is ErrorCode.NONE


def test_the_guard_of_the_next_transaction_outlives_the_marker_of_the_one_before(log: Log) -> None:
    assert log.write(log.start(is_second_version=True)) is ErrorCode.NONE
    guard = log.start(epoch=1, is_second_version=True)
    assert log.end(epoch=1, version=2) is ErrorCode.NONE
    assert log.write(guard, epoch=1) is ErrorCode.NONE


def test_an_old_epoch_is_fenced_before_anybody_is_asked(log: Log) -> None:
    assert log.write(log.start(epoch=3), epoch=3) is ErrorCode.NONE
    with pytest.raises(ProducerError) as refused:
        log.start(epoch=2)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.write(None, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH, "not INVALID_TXN_STATE"
    assert log.start(epoch=4) is not None, "the open transaction is of another epoch"


def test_a_batch_does_not_pass_an_earlier_one_that_is_not_verified_yet(log: Log) -> None:
    guard = log.start(sequence=4)
    assert log.start(sequence=1) is guard
    assert log.start(sequence=6) is guard
    assert log.write(guard, sequence=4) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.write(guard, sequence=1) is ErrorCode.NONE
    later = Log()
    guard = later.start(sequence=1)
    assert later.start(sequence=5, epoch=1) is guard
    assert later.write(guard, sequence=5, epoch=1) is ErrorCode.NONE, "a new epoch begins anew"


def test_an_unknown_producer_with_epochs_for_transactions_begins_at_zero(log: Log) -> None:
    guard = log.start(sequence=5, is_second_version=True)
    assert log.write(guard, sequence=5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.write(guard, sequence=0) is ErrorCode.NONE
    assert Log().write(None, sequence=5, must_be_verified=False) is ErrorCode.NONE


def test_a_verification_that_never_ends_is_forgotten_in_time(log: Log) -> None:
    guard = log.start(now_ms=5000)
    log.state.expire(5000 + EXPIRATION_MS - 1)
    assert log.start(now_ms=9999) is guard
    log.state.expire(5000 + EXPIRATION_MS)
    assert log.start(now_ms=9999) is not guard
