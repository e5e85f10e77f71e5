"""The book of coordinated transactions settles their offsets and the outcomes of the history."""

import pytest

from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.client_history import FAIL, INFO, OK, TXN, ClientHistory
from kvorum.simulation.partitions.group_ledger import OffsetLedger
from kvorum.simulation.partitions.transaction_book import BookedTransaction, TransactionBook
from kvorum.simulation.properties.catalogue import Checks, PropertyViolatedError

PRODUCER_ID = 7
EPOCH = 3


def begun(offsets: OffsetLedger) -> BookedTransaction:
    """Return a transaction that commits an offset."""
    history = ClientHistory(lambda: 0.0, 1)
    return BookedTransaction(
        name="payments/0/0",
        producer_id=PRODUCER_ID,
        epoch=EPOCH,
        begun_ms=0.0,
        operation=history.begin(history.new_process(), TXN),
        offsets=offsets,
        offset=offsets.give_to_transaction(),
    )


def opened(*, keeps_markers: bool = True) -> tuple[TransactionBook, BookedTransaction]:
    """Return a book with one transaction."""
    checks = Checks()
    checks.include(promises.ALL)
    book = TransactionBook(keeps_markers=keeps_markers)
    transaction = begun(OffsetLedger(checks))
    book.add(transaction)
    return book, transaction


def read(book: TransactionBook, transaction: BookedTransaction, *, is_commit: bool) -> None:
    book.on_read(transaction.record_value(0), is_commit=is_commit)


@pytest.mark.parametrize("is_commit", [True, False])
def test_an_acknowledged_outcome_is_that_of_the_operation(is_commit: bool) -> None:
    _, transaction = opened()
    transaction.ask_for(is_commit=is_commit)
    transaction.acknowledge(is_commit=is_commit)
    assert transaction.operation.outcome == (OK if is_commit else FAIL)


def test_a_transaction_of_an_earlier_epoch_has_failed_where_no_commit_was_asked_for() -> None:
    book, transaction = opened()
    book.on_initialized(PRODUCER_ID, EPOCH + 1)
    transaction.ask_for(is_commit=True)
    transaction.acknowledge(is_commit=True)
    assert transaction.operation.outcome == FAIL


def test_a_commit_that_was_asked_for_before_may_be_acknowledged_later() -> None:
    book, transaction = opened()
    transaction.ask_for(is_commit=True)
    book.on_initialized(PRODUCER_ID, EPOCH + 1)
    assert transaction.operation.completed is None
    transaction.acknowledge(is_commit=True)
    assert transaction.operation.outcome == OK


@pytest.mark.parametrize(("producer_id", "epoch"), [(PRODUCER_ID, EPOCH), (PRODUCER_ID + 1, 9)])
def test_another_producer_and_the_same_epoch_fence_no_transaction(
    producer_id: int, epoch: int
) -> None:
    book, transaction = opened()
    book.on_initialized(producer_id, epoch)
    assert transaction.operation.completed is None


def test_what_a_fenced_producer_begins_has_failed() -> None:
    book, transaction = opened()
    book.on_initialized(PRODUCER_ID, EPOCH + 1)
    later = begun(transaction.offsets)
    book.add(later)
    assert later.operation.outcome == FAIL


@pytest.mark.parametrize("is_commit_wanted", [True, False])
def test_the_end_of_a_producer_leaves_a_commit_unknown(is_commit_wanted: bool) -> None:
    _, transaction = opened()
    transaction.ask_for(is_commit=is_commit_wanted)
    transaction.break_off()
    assert transaction.operation.completed is not None
    assert transaction.operation.outcome == (INFO if is_commit_wanted else FAIL)


def test_an_aborted_record_may_lack_its_marker_after_compaction() -> None:
    book, transaction = opened(keeps_markers=False)
    read(book, transaction, is_commit=True)
    assert not transaction.is_settled
    read(book, transaction, is_commit=False)
    assert transaction.is_settled


def test_the_offset_of_a_committed_transaction_is_read() -> None:
    book, transaction = opened()
    transaction.ask_for(is_commit=True)
    read(book, transaction, is_commit=True)
    with pytest.raises(PropertyViolatedError) as error:
        transaction.offsets.on_read(-1, "")
    assert error.value.broken == promises.OFFSETS_KEPT


@pytest.mark.parametrize("is_decided", [False, True])
def test_the_offset_of_an_open_or_aborted_transaction_is_not_read(is_decided: bool) -> None:
    book, transaction = opened()
    if is_decided:
        transaction.ask_for(is_commit=True)
        read(book, transaction, is_commit=False)
    assert transaction.offset is not None
    with pytest.raises(PropertyViolatedError) as error:
        transaction.offsets.on_read(transaction.offset, "")
    assert error.value.broken == promises.OFFSETS_KNOWN
