"""The transaction that an operation of a coordinator belongs to."""

from typing import Final, NamedTuple

from kvorum.storage.log.verification_state import NO_TRANSACTION as NOTHING_VERIFIED
from kvorum.storage.log.verification_state import TransactionAppend
from kvorum.wire.records.batch import NO_PRODUCER


class TransactionProducer(NamedTuple):
    """The producer whose transaction a batch belongs to."""

    producer_id: int = NO_PRODUCER
    epoch: int = -1


NO_TRANSACTION: Final = TransactionProducer()


class TransactionWrite(NamedTuple):
    """The transaction of an operation: its producer, and what the append says of it."""

    producer: TransactionProducer = NO_TRANSACTION
    append: TransactionAppend = NOTHING_VERIFIED


OUTSIDE: Final = TransactionWrite()
"""An operation outside of every transaction."""
