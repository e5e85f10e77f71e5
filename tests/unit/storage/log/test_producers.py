"""A log's producers, their transactions as they begin, and the index of the aborted ones."""

from pathlib import Path

import pytest
from tests.support.faulty_files import FaultyFiles, MemoryFile
from tests.unit.storage.topic_logs import batch_of, marker

from kvorum.storage.errors import CorruptFileError, DiskError
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.producer_state import CompletedTransaction, ProducerError, ProducerState
from kvorum.storage.log.transaction_index import AbortedTransaction, TransactionIndex
from kvorum.storage.log.verification_state import TransactionAppend, VerificationGuard
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import ControlRecordType, RecordBatch, RecordData

PRODUCER = 1000
INT32_MAX = 2**31 - 1
VERIFIED_PRODUCER = 7
EXPIRATION_MS = 1000
FILE = Path("/data/topic-0/00000000000000000007.txnindex")
ONE = AbortedTransaction(1000, 7, 9, 10)
TWO = AbortedTransaction(5, 8, 20, 12)
THREE = AbortedTransaction(1000, 12, 25, 26)


class Log:
    """A log that takes batches of one or two producers."""

    def __init__(self) -> None:
        self.state = ProducerState()

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
        batch = batch_of(
            *[RecordData(b"v", None, 5)] * ((last - first) % (INT32_MAX + 1) + 1),
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
    log.state.expire(now_ms=1004, expiration_ms=EXPIRATION_MS)
    assert log.state.entries.keys() == {1, 2}
    log.state.expire(now_ms=1005, expiration_ms=EXPIRATION_MS)
    assert log.state.entries.keys() == {1}
    assert log.write(9, 9, producer=2) == "ok"


def test_a_transaction_is_late_whose_producer_has_written_nothing_since(log: Log) -> None:
    assert not log.state.has_late_transaction(1_000)
    log.write(0, 0, open_=True)
    assert [log.state.has_late_transaction(wall_ms) for wall_ms in (5, 6)] == [False, True]
    ended = log.end(PRODUCER)
    assert ended is not None
    log.state.complete(ended)
    assert not log.state.has_late_transaction(1_000)


def test_a_marker_of_a_lost_coordinator_is_refused(log: Log) -> None:
    log.write(0, 0, epoch=5, open_=True)
    with pytest.raises(ProducerError) as caught:
        log.end(PRODUCER, epoch=4)
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.state.first_undecided_offset == 0


class Guarded:
    """A log whose transactional batches have to be verified."""

    def __init__(self) -> None:
        self.state = ProducerState()

    def start(
        self, *, epoch: int = 0, sequence: int = 0, is_second_version: bool = False, now_ms: int = 0
    ) -> VerificationGuard | None:
        return self.state.maybe_start_transaction_verification(
            VERIFIED_PRODUCER,
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
            producer_id=VERIFIED_PRODUCER,
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
            producer_id=VERIFIED_PRODUCER,
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
def guarded() -> Guarded:
    return Guarded()


@pytest.mark.parametrize("origin", [AppendOrigin.CLIENT, AppendOrigin.COORDINATOR])
def test_the_first_batch_of_a_transaction_needs_its_guard(
    guarded: Guarded, origin: AppendOrigin
) -> None:
    assert guarded.write(None, origin=origin) is ErrorCode.INVALID_TXN_STATE
    guard = guarded.start()
    assert guard is not None
    assert guarded.write(None, origin=origin) is ErrorCode.INVALID_TXN_STATE
    assert guarded.write(VerificationGuard(), origin=origin) is ErrorCode.INVALID_TXN_STATE
    assert guarded.write(guard, origin=origin) is ErrorCode.NONE
    assert guarded.start() is None, "the transaction is open"
    assert guarded.write(None, sequence=1, origin=origin) is ErrorCode.NONE


def test_nothing_has_to_be_verified_where_that_is_switched_off_or_a_leader_has_done_it() -> None:
    assert Guarded().write(None, must_be_verified=False) is ErrorCode.NONE
    assert Guarded().write(None, origin=AppendOrigin.REPLICATION) is ErrorCode.NONE


def test_batches_that_wait_at_the_same_time_have_one_guard(guarded: Guarded) -> None:
    assert guarded.start(sequence=0) is guarded.start(sequence=3)


def test_a_marker_between_verification_and_append_makes_the_guard_void(guarded: Guarded) -> None:
    guard = guarded.start()
    assert guarded.end() is ErrorCode.NONE
    assert guarded.write(guard) is ErrorCode.INVALID_TXN_STATE
    again = guarded.start()
    assert again is not guard
    assert guarded.write(guard) is ErrorCode.INVALID_TXN_STATE, "the answer was about another one"
    assert guarded.write(again) is ErrorCode.NONE


def test_the_guard_of_the_next_transaction_outlives_the_marker_of_the_one_before(
    guarded: Guarded,
) -> None:
    assert guarded.write(guarded.start(is_second_version=True)) is ErrorCode.NONE
    guard = guarded.start(epoch=1, is_second_version=True)
    assert guarded.end(epoch=1, version=2) is ErrorCode.NONE
    assert guarded.write(guard, epoch=1) is ErrorCode.NONE


def test_an_old_epoch_is_fenced_before_anybody_is_asked(guarded: Guarded) -> None:
    assert guarded.write(guarded.start(epoch=3), epoch=3) is ErrorCode.NONE
    with pytest.raises(ProducerError) as refused:
        guarded.start(epoch=2)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert guarded.write(None, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH, "not INVALID_TXN_STATE"
    assert guarded.start(epoch=4) is not None, "the open transaction is of another epoch"


def test_a_batch_does_not_pass_an_earlier_one_that_is_not_verified_yet(guarded: Guarded) -> None:
    guard = guarded.start(sequence=4)
    assert guarded.start(sequence=1) is guard
    assert guarded.start(sequence=6) is guard
    assert guarded.write(guard, sequence=4) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert guarded.write(guard, sequence=1) is ErrorCode.NONE
    later = Guarded()
    guard = later.start(sequence=1)
    assert later.start(sequence=5, epoch=1) is guard
    assert later.write(guard, sequence=5, epoch=1) is ErrorCode.NONE, "a new epoch begins anew"


def test_an_unknown_producer_with_epochs_for_transactions_begins_at_zero(guarded: Guarded) -> None:
    guard = guarded.start(sequence=5, is_second_version=True)
    assert guarded.write(guard, sequence=5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert guarded.write(guard, sequence=0) is ErrorCode.NONE
    assert Guarded().write(None, sequence=5, must_be_verified=False) is ErrorCode.NONE


def test_a_verification_that_never_ends_is_forgotten_in_time(guarded: Guarded) -> None:
    guard = guarded.start(now_ms=5000)
    guarded.state.expire(now_ms=5000 + EXPIRATION_MS - 1, expiration_ms=EXPIRATION_MS)
    assert guarded.start(now_ms=9999) is guard
    guarded.state.expire(now_ms=5000 + EXPIRATION_MS, expiration_ms=EXPIRATION_MS)
    assert guarded.start(now_ms=9999) is not guard


def index_in(files: FaultyFiles) -> TransactionIndex:
    return TransactionIndex(FILE, 7, files=files)


def filled(files: FaultyFiles) -> TransactionIndex:
    index = index_in(files)
    for entry in (ONE, TWO, THREE):
        index.append(entry)
    return index


def test_an_entry_is_written_as_kafka_writes_it(files: FaultyFiles) -> None:
    index_in(files).append(ONE)
    assert bytes(files.names[FILE].content).hex() == (
        "000000000000000003e800000000000000070000000000000009000000000000000a"
    )


def test_no_file_exists_before_the_first_entry(files: FaultyFiles) -> None:
    index = index_in(files)
    index.truncate_to(0)
    index.reset()
    index.sync()
    index.close()
    assert index.entries == ()
    assert files.names == {}


def test_entries_are_there_after_opening_again(files: FaultyFiles) -> None:
    filled(files).close()
    again = index_in(files)
    again.append(AbortedTransaction(6, 26, 27, 28))
    assert again.entries[:3] == (ONE, TWO, THREE)
    assert len(index_in(files).entries) == 4


def test_a_part_of_an_entry_at_the_end_is_ignored_and_written_over(files: FaultyFiles) -> None:
    filled(files)
    del files.names[FILE].content[-1]
    index = index_in(files)
    assert index.entries == (ONE, TWO)
    index.append(THREE)
    assert index_in(files).entries == (ONE, TWO, THREE)


@pytest.mark.parametrize("marker", [20, 19])
def test_markers_must_ascend(files: FaultyFiles, marker: int) -> None:
    index = index_in(files)
    index.append(TWO)
    with pytest.raises(ValueError, match="does not follow"):
        index.append(AbortedTransaction(1, 8, marker, 21))
    assert index_in(files).entries == (TWO,)


@pytest.mark.parametrize(
    ("first", "end", "found", "is_complete"),
    [
        (0, 7, [], True),
        (0, 8, [ONE], True),
        (9, 10, [ONE], True),
        (10, 12, [TWO], True),
        (10, 13, [TWO, THREE], True),
        (0, 26, [ONE, TWO, THREE], True),
        (0, 27, [ONE, TWO, THREE], False),
        (26, 30, [], False),
    ],
)
def test_what_a_reader_must_know(
    first: int, end: int, found: list[AbortedTransaction], *, is_complete: bool
) -> None:
    assert filled(FaultyFiles()).find(first, end) == (tuple(found), is_complete)


def test_truncation_removes_markers_at_and_above_the_offset(files: FaultyFiles) -> None:
    index = filled(files)
    index.truncate_to(26)
    assert index.entries == (ONE, TWO, THREE)
    index.truncate_to(25)
    assert index.entries == index_in(files).entries == (ONE, TWO)
    index.append(THREE)
    index.truncate_to(0)
    assert len(files.names[FILE].content) == 0


def test_a_reset_removes_everything_even_what_cannot_be_read() -> None:
    files = FaultyFiles(names={FILE: MemoryFile(b"\x01" * 34)})
    index = index_in(files)
    index.reset()
    index.append(ONE)
    assert index_in(files).entries == (ONE,)


@pytest.mark.parametrize("version", [1, 256, -1])
def test_another_version_than_0_is_refused(files: FaultyFiles, version: int) -> None:
    filled(files)
    files.names[FILE].content[34:36] = version.to_bytes(2, "big", signed=True)
    with pytest.raises(CorruptFileError, match=rf"version {version} .*byte 34"):
        _ = index_in(files).entries


def test_a_marker_below_the_segment_is_refused(files: FaultyFiles) -> None:
    filled(files)
    with pytest.raises(CorruptFileError, match=r"a marker at offset 9, below 10 .*byte 0"):
        _ = TransactionIndex(FILE, 10, files=files).entries


def test_a_marker_before_the_last_one_is_refused(files: FaultyFiles) -> None:
    filled(files)
    content = files.names[FILE].content
    content += bytes(34)
    with pytest.raises(CorruptFileError, match=r"a marker at offset 0, below .*byte 102"):
        _ = index_in(files).entries


def test_a_failed_write_leaves_the_entries_as_they_were(files: FaultyFiles) -> None:
    index = index_in(files)
    index.append(ONE)
    files.fail("write", 1)
    with pytest.raises(DiskError):
        index.append(TWO)
    assert index.entries == (ONE,)
    index.append(TWO)
    assert index_in(files).entries == (ONE, TWO)


def test_synced_entries_survive_a_power_cut(files: FaultyFiles) -> None:
    filled(files).sync()
    assert files.names[FILE].synced == bytes(files.names[FILE].content)
