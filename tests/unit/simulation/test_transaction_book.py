"""The book of coordinated transactions refuses what no reader may see."""

import pytest

from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.group_ledger import OffsetLedger
from kvorum.simulation.partitions.transaction_book import BookedTransaction, TransactionBook
from kvorum.simulation.properties.catalogue import Checks, Property, PropertyViolatedError

TRANSACTIONAL_ID = "payments"


def opened(*, keeps_markers: bool = True) -> tuple[TransactionBook, BookedTransaction]:
    """Return a book with one transaction, of instance 0, that commits an offset."""
    checks = Checks()
    checks.include(promises.ALL)
    book = TransactionBook(checks, keeps_markers=keeps_markers)
    offsets = OffsetLedger(checks)
    transaction = book.begin(TRANSACTIONAL_ID, 0, offsets, 0.0)
    transaction.offset = offsets.give_to_transaction()
    return book, transaction


def read(book: TransactionBook, transaction: BookedTransaction, *, is_commit: bool) -> None:
    book.on_read(transaction.record_value(0), is_commit=is_commit, message="")


def broken_by(error: pytest.ExceptionInfo[PropertyViolatedError]) -> Property:
    return error.value.broken


def test_partitions_have_one_outcome() -> None:
    book, transaction = opened()
    transaction.ask_for(is_commit=True)
    read(book, transaction, is_commit=False)
    with pytest.raises(PropertyViolatedError) as error:
        read(book, transaction, is_commit=True)
    assert broken_by(error) == promises.WHOLE_TRANSACTIONS


@pytest.mark.parametrize("is_commit", [True, False])
def test_an_acknowledged_outcome_is_the_one_that_is_read(is_commit: bool) -> None:
    book, transaction = opened()
    transaction.ask_for(is_commit=is_commit)
    book.acknowledge(transaction, is_commit=is_commit)
    with pytest.raises(PropertyViolatedError) as error:
        read(book, transaction, is_commit=not is_commit)
    assert broken_by(error) == promises.OUTCOME_KEPT


def test_a_transaction_is_not_committed_unasked() -> None:
    book, transaction = opened()
    transaction.ask_for(is_commit=False)
    with pytest.raises(PropertyViolatedError) as error:
        read(book, transaction, is_commit=True)
    assert broken_by(error) == promises.READS_COMMITTED


def test_a_commit_that_a_zombie_asks_for_is_not_one() -> None:
    book, transaction = opened()
    book.on_initialized(TRANSACTIONAL_ID, 1)
    transaction.ask_for(is_commit=True)
    with pytest.raises(PropertyViolatedError) as error:
        book.acknowledge(transaction, is_commit=True)
    assert broken_by(error) == promises.ZOMBIES_FENCED


def test_a_commit_that_was_asked_for_before_may_be_acknowledged_later() -> None:
    book, transaction = opened()
    transaction.ask_for(is_commit=True)
    book.on_initialized(TRANSACTIONAL_ID, 1)
    book.acknowledge(transaction, is_commit=True)
    read(book, transaction, is_commit=True)


def test_an_aborted_record_may_lack_its_marker_after_compaction() -> None:
    book, transaction = opened(keeps_markers=False)
    read(book, transaction, is_commit=True)
    read(book, transaction, is_commit=False)
    assert transaction.read is False


def test_the_offset_of_a_committed_transaction_is_read() -> None:
    book, transaction = opened()
    transaction.ask_for(is_commit=True)
    read(book, transaction, is_commit=True)
    with pytest.raises(PropertyViolatedError) as error:
        transaction.offsets.on_read(-1, "")
    assert broken_by(error) == promises.OFFSETS_KEPT


@pytest.mark.parametrize("is_decided", [False, True])
def test_the_offset_of_an_open_or_aborted_transaction_is_not_read(is_decided: bool) -> None:
    book, transaction = opened()
    if is_decided:
        transaction.ask_for(is_commit=True)
        read(book, transaction, is_commit=False)
    assert transaction.offset is not None
    with pytest.raises(PropertyViolatedError) as error:
        transaction.offsets.on_read(transaction.offset, "")
    assert broken_by(error) == promises.OFFSETS_KNOWN
