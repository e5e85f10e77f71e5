"""The steps of a transactional id: who may take them, what they answer, what they leave behind."""

from dataclasses import replace
from typing import Final

import pytest
from tests.support.transaction_coordinator import DATA, FIRST_PRODUCER, ID, TIMEOUT_MS, Coordinator

from kvorum.coordinator.record import DamagedRecordError
from kvorum.transactions.transaction_metadata import (
    EXHAUSTED_EPOCH,
    LAST_EPOCH,
    TransactionMetadata,
    TransactionPartition,
)
from kvorum.transactions.transaction_state import TransactionState
from kvorum.wire.error_codes import ErrorCode

OK: Final = ErrorCode.NONE
FENCED: Final = (ErrorCode.PRODUCER_FENCED, -1, -1)
BUSY: Final = (ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1)
WRONG_STATE: Final = (ErrorCode.INVALID_TXN_STATE, -1, -1)
OTHER: Final = TransactionPartition("data", 1)
DAY_MS: Final = 86_400_000
SWEEP_MS: Final = 10_000


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


def begun(coordinator: Coordinator, version: int = 2) -> tuple[int, int]:
    """Open a transaction; return its producer's id and epoch."""
    _, producer_id, epoch = coordinator.init()
    assert coordinator.add(producer_id, epoch, version=version) == OK
    return producer_id, epoch


def state_with(coordinator: Coordinator, state: TransactionState, epoch: int) -> int:
    """Put the id into a state; return its producer's id."""
    coordinator.put(
        TransactionMetadata(
            transactional_id=ID,
            producer_id=FIRST_PRODUCER,
            previous_producer_id=FIRST_PRODUCER,
            producer_epoch=epoch,
            timeout_ms=TIMEOUT_MS,
            state=state,
            partitions=frozenset([DATA]) if state is TransactionState.ONGOING else frozenset(),
            start_ms=coordinator.now,
            last_update_ms=coordinator.now,
            client_version=2,
        )
    )
    coordinator.next_producer = FIRST_PRODUCER + 1
    return FIRST_PRODUCER


# --- InitProducerId ---


def test_each_producer_of_an_id_has_the_next_epoch(coordinator: Coordinator) -> None:
    assert coordinator.init() == (OK, FIRST_PRODUCER, 0)
    assert coordinator.init() == (OK, FIRST_PRODUCER, 1)


def test_a_producer_that_asks_again_gets_the_epoch_of_the_answer_that_was_lost(
    coordinator: Coordinator,
) -> None:
    coordinator.init()
    assert coordinator.init(FIRST_PRODUCER, 0) == (OK, FIRST_PRODUCER, 1)
    assert coordinator.init(FIRST_PRODUCER, 0) == (OK, FIRST_PRODUCER, 1)
    coordinator.load()
    assert coordinator.init(FIRST_PRODUCER, 0) == FENCED, "the epoch before is not in the log"


@pytest.mark.parametrize("producer", [(FIRST_PRODUCER + 5, 1), (FIRST_PRODUCER, 7)])
def test_a_producer_that_another_one_has_replaced_is_fenced(
    coordinator: Coordinator, producer: tuple[int, int]
) -> None:
    coordinator.init()
    coordinator.init()
    assert coordinator.init(*producer) == FENCED


def test_a_new_producer_aborts_the_open_transaction_with_one_more_epoch(
    coordinator: Coordinator,
) -> None:
    producer_id, epoch = begun(coordinator)
    assert coordinator.init() == BUSY
    assert coordinator.state() is TransactionState.PREPARE_ABORT
    assert coordinator.metadata.producer_epoch == epoch + 1
    assert coordinator.init() == BUSY, "until the markers are written"
    coordinator.complete()
    assert coordinator.init() == (OK, producer_id, epoch + 2)


def test_in_one_epoch_for_all_transactions_the_abort_fences_its_producer() -> None:
    coordinator = Coordinator(transaction_version=1)
    producer_id, epoch = begun(coordinator, version=0)
    assert coordinator.init() == BUSY
    assert (coordinator.metadata.producer_epoch, coordinator.metadata.last_producer_epoch) == (
        epoch + 1,
        -1,
    )
    assert coordinator.end(producer_id, epoch, version=0) == FENCED


def test_a_failed_fence_costs_no_epoch(coordinator: Coordinator) -> None:
    """KAFKA-9666."""
    coordinator.transaction_version = 1
    producer_id, epoch = begun(coordinator, version=0)
    for _ in range(5):
        coordinator.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
        assert coordinator.init()[0] == ErrorCode.NOT_ENOUGH_REPLICAS
    assert coordinator.init() == BUSY
    coordinator.complete()
    assert coordinator.init() == (OK, producer_id, epoch + 2)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_exhausted_epoch_gives_the_next_producer_another_id(version: int) -> None:
    coordinator = Coordinator(version)
    producer_id = state_with(coordinator, TransactionState.EMPTY, EXHAUSTED_EPOCH)
    assert coordinator.init(producer_id, EXHAUSTED_EPOCH) == (OK, producer_id + 1, 0)
    assert coordinator.init(producer_id, EXHAUSTED_EPOCH) == (OK, producer_id + 1, 0), "again"


# --- partitions ---


def test_partitions_join_the_transaction_that_the_first_ones_begin(
    coordinator: Coordinator,
) -> None:
    producer_id, epoch = begun(coordinator)
    began = coordinator.metadata.start_ms
    coordinator.now += 5
    assert coordinator.add(producer_id, epoch, OTHER) == OK
    assert coordinator.metadata.partitions == {DATA, OTHER}
    assert coordinator.metadata.start_ms == began
    records = len(coordinator.log)
    assert coordinator.add(producer_id, epoch, DATA) == OK
    assert len(coordinator.log) == records, "nothing is new"


@pytest.mark.parametrize(
    ("producer_step", "epoch_step", "code"),
    [
        (1, 0, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (0, 1, ErrorCode.PRODUCER_FENCED),
        (0, -1, ErrorCode.PRODUCER_FENCED),
    ],
)
def test_others_may_not_add_partitions_nor_have_them_verified(
    coordinator: Coordinator, producer_step: int, epoch_step: int, code: ErrorCode
) -> None:
    producer_id, epoch = begun(coordinator)
    other = producer_id + producer_step, epoch + epoch_step
    assert coordinator.add(*other, OTHER) == code
    assert coordinator.verify(*other) == [code]


def test_a_partition_is_verified_that_is_in_the_open_transaction(coordinator: Coordinator) -> None:
    producer_id, epoch = begun(coordinator)
    assert coordinator.verify(producer_id, epoch, DATA, OTHER) == [
        OK,
        ErrorCode.TRANSACTION_ABORTABLE,
    ]
    assert coordinator.end(producer_id, epoch)[0] == OK
    assert coordinator.verify(producer_id, epoch + 1) == [ErrorCode.CONCURRENT_TRANSACTIONS]


def test_an_id_is_busy_until_its_step_is_committed(coordinator: Coordinator) -> None:
    producer_id, epoch = begun(coordinator)
    coordinator.is_held = True
    assert coordinator.add(producer_id, epoch, OTHER) == OK
    assert coordinator.add(producer_id, epoch, OTHER) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert coordinator.end(producer_id, epoch) == BUSY
    assert coordinator.init() == BUSY
    assert coordinator.verify(producer_id, epoch, OTHER) == [ErrorCode.TRANSACTION_ABORTABLE]
    coordinator.commit()
    assert coordinator.verify(producer_id, epoch, OTHER) == [OK]


# --- EndTxn ---

STATES: Final = [
    TransactionState.ONGOING,
    TransactionState.EMPTY,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
]
ENDED: Final = (OK, FIRST_PRODUCER, 8)
SAME: Final = (OK, FIRST_PRODUCER, 7)


@pytest.mark.parametrize(
    ("is_commit", "is_retry", "answers"),
    [
        (True, False, (ENDED, WRONG_STATE, WRONG_STATE, WRONG_STATE)),
        (True, True, (FENCED, FENCED, SAME, WRONG_STATE)),
        (False, False, (ENDED, ENDED, ENDED, ENDED)),
        (False, True, (FENCED, FENCED, WRONG_STATE, SAME)),
    ],
)
def test_with_an_epoch_for_each_transaction_the_epoch_tells_a_retry_from_the_next_end(
    is_commit: bool, is_retry: bool, answers: tuple[tuple[int, int, int], ...]
) -> None:
    for state, expected in zip(STATES, answers, strict=True):
        coordinator = Coordinator()
        producer_id = state_with(coordinator, state, 7)
        epoch = 6 if is_retry else 7
        assert coordinator.end(producer_id, epoch, is_commit=is_commit) == expected, state


@pytest.mark.parametrize(
    ("is_commit", "answers"),
    [
        (True, (SAME, WRONG_STATE, SAME, WRONG_STATE)),
        (False, (SAME, WRONG_STATE, WRONG_STATE, SAME)),
    ],
)
def test_in_one_epoch_for_all_transactions_the_state_alone_tells(
    is_commit: bool, answers: tuple[tuple[int, int, int], ...]
) -> None:
    for state, expected in zip(STATES, answers, strict=True):
        coordinator = Coordinator(transaction_version=1)
        producer_id = state_with(coordinator, state, 7)
        answer = coordinator.end(producer_id, 7, is_commit=is_commit, version=0)
        assert answer == expected, state
        assert coordinator.end(producer_id, 8, is_commit=is_commit, version=0) in (FENCED, BUSY)


def test_an_end_right_after_another_one_waits_for_its_markers(coordinator: Coordinator) -> None:
    """KAFKA-18464: the pending state counts before the epoch."""
    producer_id, epoch = begun(coordinator)
    assert coordinator.end(producer_id, epoch) == (OK, producer_id, epoch + 1)
    assert coordinator.end(producer_id, epoch + 1, is_commit=False) == BUSY
    coordinator.complete()
    assert coordinator.end(producer_id, epoch + 1, is_commit=False)[0] == OK


def test_markers_are_wanted_when_the_outcome_is_committed_and_not_before(
    coordinator: Coordinator,
) -> None:
    producer_id, epoch = begun(coordinator)
    coordinator.is_held = True
    coordinator.end(producer_id, epoch)
    assert coordinator.ending == []
    coordinator.commit()
    assert coordinator.ending == [coordinator.metadata]
    assert coordinator.metadata.producer_epoch == epoch + 1, "the markers have the next epoch"


def test_an_outcome_that_is_committed_late_has_its_markers_all_the_same(
    coordinator: Coordinator,
) -> None:
    producer_id, epoch = begun(coordinator)
    coordinator.is_held = True
    coordinator.end(producer_id, epoch)
    coordinator.expire_waits()
    coordinator.pass_time(1)
    assert coordinator.ending == []
    coordinator.commit()
    assert len(coordinator.ending) == 1


def test_the_next_leader_writes_the_markers_again_once_the_outcome_is_committed(
    coordinator: Coordinator,
) -> None:
    producer_id, epoch = begun(coordinator)
    coordinator.end(producer_id, epoch)
    coordinator.is_held = True
    coordinator.load()
    coordinator.pass_time(1)
    assert coordinator.ending == [], "it may be lost with this leader"
    coordinator.commit()
    assert [one.state for one in coordinator.ending] == [TransactionState.PREPARE_COMMIT]


def test_markers_that_are_written_twice_end_a_transaction_once(coordinator: Coordinator) -> None:
    """KAFKA-16352: an older end does not complete a newer transaction."""
    producer_id, epoch = begun(coordinator)
    coordinator.end(producer_id, epoch)
    first = coordinator.ending[0]
    coordinator.complete()
    assert coordinator.add(producer_id, epoch + 1) == OK
    assert coordinator.end(producer_id, epoch + 1)[0] == OK
    coordinator.ending.insert(0, first)
    coordinator.complete()
    assert coordinator.state() is TransactionState.PREPARE_COMMIT
    coordinator.complete()
    assert coordinator.state() is TransactionState.COMPLETE_COMMIT


def test_an_end_does_not_complete_a_newer_transaction_in_the_same_epoch() -> None:
    """KAFKA-16352, with one epoch for all transactions."""
    coordinator = Coordinator(transaction_version=1)
    producer_id, epoch = begun(coordinator, version=0)
    coordinator.end(producer_id, epoch, version=0)
    first = coordinator.ending[0]
    coordinator.complete()
    coordinator.now += 1
    assert coordinator.add(producer_id, epoch, version=0) == OK
    assert coordinator.end(producer_id, epoch, version=0)[0] == OK
    coordinator.ending.insert(0, first)
    coordinator.complete()
    assert coordinator.state() is TransactionState.PREPARE_COMMIT
    coordinator.complete()
    assert coordinator.state() is TransactionState.COMPLETE_COMMIT


def test_a_transaction_with_the_last_epoch_gives_its_producer_another_id(
    coordinator: Coordinator,
) -> None:
    """KAFKA-18660: the answer names the next id, and so does the answer to a retry."""
    producer_id = state_with(coordinator, TransactionState.ONGOING, EXHAUSTED_EPOCH)
    expected = (OK, producer_id + 1, 0)
    assert coordinator.end(producer_id, EXHAUSTED_EPOCH) == expected
    assert coordinator.metadata.producer_epoch == LAST_EPOCH
    coordinator.complete()
    assert coordinator.end(producer_id, EXHAUSTED_EPOCH) == expected
    assert coordinator.end(producer_id, 3)[0] == ErrorCode.INVALID_PRODUCER_ID_MAPPING


# --- time ---


def test_a_transaction_that_is_open_for_too_long_is_aborted(coordinator: Coordinator) -> None:
    producer_id, epoch = begun(coordinator)
    coordinator.pass_time(TIMEOUT_MS)
    assert coordinator.state() is TransactionState.ONGOING
    coordinator.pass_time(SWEEP_MS)
    assert coordinator.state() is TransactionState.PREPARE_ABORT
    coordinator.complete()
    assert coordinator.end(producer_id, epoch + 5) == FENCED
    assert coordinator.add(producer_id, epoch) == ErrorCode.PRODUCER_FENCED


def test_a_time_out_in_the_last_epoch_rotates_the_id(coordinator: Coordinator) -> None:
    """KAFKA-20090."""
    producer_id = state_with(coordinator, TransactionState.ONGOING, EXHAUSTED_EPOCH)
    coordinator.pass_time(TIMEOUT_MS + SWEEP_MS)
    coordinator.complete()
    metadata = coordinator.metadata
    assert metadata.state is TransactionState.COMPLETE_ABORT
    assert (metadata.producer_id, metadata.producer_epoch) == (producer_id + 1, 0)


def test_an_id_expires_that_no_producer_uses(
    coordinator: Coordinator,
) -> None:
    coordinator.init()
    coordinator.pass_time(7 * DAY_MS + 3_600_000)
    assert coordinator.shard.ids.committed(ID) is None
    assert coordinator.log[-1][1] is None
    assert coordinator.end(FIRST_PRODUCER, 0)[0] == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_an_expiry_that_the_log_refuses_leaves_the_id_as_it_was(coordinator: Coordinator) -> None:
    """KAFKA-7519."""
    coordinator.init()
    coordinator.now += 7 * DAY_MS
    coordinator.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(Exception, match="replicas"):
        coordinator.pass_time(3_600_000)
    assert coordinator.init() == (OK, FIRST_PRODUCER, 1)


# --- the log ---


def test_the_state_is_what_the_log_says(coordinator: Coordinator) -> None:
    producer_id, epoch = begun(coordinator)
    coordinator.add(producer_id, epoch, OTHER, TransactionPartition("more", 3))
    before = coordinator.metadata
    coordinator.load()
    assert coordinator.metadata == replace(before, last_producer_epoch=-1)


def test_what_the_log_refuses_has_not_happened(coordinator: Coordinator) -> None:
    producer_id, epoch = begun(coordinator)
    coordinator.refusal = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert coordinator.end(producer_id, epoch)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (coordinator.ending, coordinator.metadata.state) == ([], TransactionState.ONGOING)
    assert coordinator.end(producer_id, epoch)[0] == OK


def test_records_have_the_fields_of_the_finalized_version() -> None:
    coordinator = Coordinator(transaction_version=0)
    coordinator.init()
    assert coordinator.log[-1][1] is not None
    assert coordinator.log[-1][1][:2] == b"\0\0"
    coordinator.transaction_version = 2
    coordinator.init()
    assert coordinator.log[-1][1][:2] == b"\0\1"


@pytest.mark.parametrize("value", [b"\0", b"\0\1\0\0", b"\0\x09"])
def test_a_value_that_cannot_be_read_stops_the_load(coordinator: Coordinator, value: bytes) -> None:
    coordinator.init()
    key, _ = coordinator.log[-1]
    with pytest.raises(DamagedRecordError):
        coordinator.shard.load_record(0, -1, key, value, 0)


def test_an_unknown_state_in_the_log_stops_the_load(coordinator: Coordinator) -> None:
    coordinator.init()
    key, value = coordinator.log[-1]
    assert value is not None
    status = 2 + 8 + 2 + 4
    damaged = value[:status] + b"\x63" + value[status + 1 :]
    with pytest.raises(DamagedRecordError, match="state 99"):
        coordinator.shard.load_record(0, -1, key, damaged, 0)
