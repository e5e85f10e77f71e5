"""The step of InitProducerId: a producer begins with an id, or fences the one before it."""

from collections.abc import Callable
from typing import NamedTuple

from kvorum.metadata.api import RequestError
from kvorum.transactions.transaction_metadata import EXHAUSTED_EPOCH, NO_EPOCH, TransactionMetadata
from kvorum.transactions.transaction_state import TransactionState
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records.batch import NO_PRODUCER


class ExpectedProducer(NamedTuple):
    """The id and epoch that a producer has, as it says; -1 each of a new one (KIP-360)."""

    producer_id: int = NO_PRODUCER
    epoch: int = NO_EPOCH

    @property
    def is_stated(self) -> bool:
        """Whether the producer has had an id."""
        return self.producer_id != NO_PRODUCER

    def require_known_to(self, metadata: TransactionMetadata) -> None:
        """Raise RequestError PRODUCER_FENCED where another producer has taken the place."""
        if not self.is_stated or metadata.producer_epoch == NO_EPOCH:
            return
        if self.producer_id == metadata.producer_id:
            return
        is_rotated = self.producer_id == metadata.previous_producer_id
        if not is_rotated or self.epoch < EXHAUSTED_EPOCH:
            raise RequestError.with_default_message(ErrorCode.PRODUCER_FENCED)


def new_transactional_id(
    transactional_id: str, producer_id: int, timeout_ms: int
) -> TransactionMetadata:
    """Return the state of an id whose first producer has no epoch yet."""
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=NO_EPOCH,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
    )


def initialized(
    metadata: TransactionMetadata,
    expected: ExpectedProducer,
    timeout_ms: int,
    now_ms: int,
    generate_producer_id: Callable[[], int],
) -> TransactionMetadata:
    """Return the next state of an id without an open transaction.

    Raises RequestError PRODUCER_FENCED for an epoch that is neither the current one nor the one
    before it, whose answer may have been lost.
    """
    current_epoch = metadata.producer_epoch
    is_current = not expected.is_stated or expected.epoch == current_epoch
    last_epoch = current_epoch if expected.is_stated else NO_EPOCH
    if metadata.is_epoch_exhausted and is_current:
        return metadata.rotate_producer_id(
            generate_producer_id(), timeout_ms, now_ms, last_producer_epoch=last_epoch
        )
    if is_current or current_epoch == NO_EPOCH:
        return metadata.increment_producer_epoch(timeout_ms, now_ms, last_producer_epoch=last_epoch)
    if expected.epoch == metadata.last_producer_epoch:
        return metadata.keep_producer_epoch(timeout_ms, now_ms)
    raise RequestError.with_default_message(ErrorCode.PRODUCER_FENCED)
