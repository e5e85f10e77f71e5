"""The state of a log's producers; in tests/interop Kafka's code folds the same batches."""

import pytest
from tests.unit.storage.topic_logs import batch_of, marker

from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.producer_state import CompletedTransaction, ProducerError, ProducerState
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import ControlRecordType, RecordData

PRODUCER = 1000
INT32_MAX = 2**31 - 1


class Log:
    """A log that takes batches of one or two producers."""

    def __init__(self) -> None:
        self.state = ProducerState(expiration_ms=1000)

    def write(
        self,
        first: int,
        last: int,
        *,
        epoch: int = 0,
        producer: int = PRODUCER,
        open_: bool = False,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> str:
        """Return what becomes of a batch of these sequences: ok, duplicate or a code."""
        count = (last - first) % (INT32_MAX + 1) + 1
        batch = batch_of(
            *[RecordData(b"v", None, 5)] * count,
            base_offset=self.state.end_offset,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=first,
            is_transactional=open_,
        )
        if self.state.entry(producer).duplicate_of(batch) is not None:
            return "duplicate"
        try:
            self.state.append(batch, origin)
        except ProducerError as error:
            return str(int(error.code))
        return "ok"

    def end(
        self, producer: int, *, is_abort: bool = False, epoch: int = 0
    ) -> CompletedTransaction | None:
        kind = ControlRecordType.ABORT if is_abort else ControlRecordType.COMMIT
        batch = marker(
            kind, base_offset=self.state.end_offset, producer_id=producer, producer_epoch=epoch
        )
        return self.state.append(batch, AppendOrigin.COORDINATOR)


@pytest.fixture
def log() -> Log:
    return Log()


def test_sequences_follow_each_other_and_what_is_sent_again_is_known(log: Log) -> None:
    sent = ((0, 4), (5, 9), (5, 9), (0, 4), (3, 7), (11, 15), (10, 14))
    answers = [log.write(*each) for each in sent]
    assert answers == ["ok", "ok", "duplicate", "duplicate", "45", "45", "ok"]
    assert log.write(15, 19, epoch=1) == "45"
    assert log.write(0, 4, epoch=1) == "ok"
    assert log.write(15, 19, epoch=0) == "47"


def test_five_batches_are_remembered(log: Log) -> None:
    for first in range(6):
        assert log.write(first, first) == "ok"
    assert log.write(0, 0) == "45"
    assert log.write(1, 1) == "duplicate"


def test_sequences_begin_again_after_the_highest(log: Log) -> None:
    assert log.write(INT32_MAX - 1, 1) == "ok"
    assert log.write(INT32_MAX - 1, 1) == "duplicate"
    assert log.write(2, 2) == "ok"
    assert log.write(INT32_MAX, INT32_MAX, producer=2) == "ok"
    assert log.write(0, 0, producer=2) == "ok"


def test_a_refused_batch_changes_nothing(log: Log) -> None:
    log.write(0, 4)
    before = dict(log.state.entries)
    assert log.write(9, 9, epoch=1) == "45"
    assert (dict(log.state.entries), log.state.end_offset) == (before, 5)


def test_a_copied_log_is_not_checked(log: Log) -> None:
    log.write(0, 4, epoch=3)
    assert log.write(77, 78, epoch=2, origin=AppendOrigin.REPLICATION) == "ok"
    assert log.state.entry(PRODUCER).last_sequence == 78


def test_readers_wait_for_the_first_transaction_whose_end_is_not_replicated(log: Log) -> None:
    log.write(0, 1, producer=1, open_=True)
    log.write(0, 1, producer=2, open_=True)
    first = log.end(1)
    assert first == CompletedTransaction(1, 0, 4, is_aborted=False)
    assert first is not None
    assert log.state.last_stable_offset(first) == 2
    log.state.complete(first)
    second = log.end(2, is_abort=True)
    assert second == CompletedTransaction(2, 2, 5, is_aborted=True)
    assert second is not None
    assert log.state.last_stable_offset(second) == 6
    log.state.complete(second)
    seen: list[int | None] = []
    for high_watermark in (4, 5, 6):
        log.state.on_high_watermark(high_watermark)
        seen.append(log.state.first_unstable_offset)
    assert seen == [0, 2, None]


def test_a_batch_outside_of_the_open_transaction_is_refused(log: Log) -> None:
    log.write(0, 1, open_=True)
    assert log.write(2, 3) == str(int(ErrorCode.INVALID_TXN_STATE))


def test_an_open_transaction_keeps_its_producer(log: Log) -> None:
    log.write(0, 0, producer=1, open_=True)
    log.write(0, 0, producer=2)
    log.state.expire(1004)
    assert log.state.entries.keys() == {1, 2}
    log.state.expire(1005)
    assert log.state.entries.keys() == {1}
    assert log.write(9, 9, producer=2) == "ok"


def test_a_marker_of_a_lost_coordinator_is_refused(log: Log) -> None:
    log.write(0, 0, epoch=5, open_=True)
    with pytest.raises(ProducerError) as caught:
        log.end(PRODUCER, epoch=4)
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.state.first_undecided_offset == 0
