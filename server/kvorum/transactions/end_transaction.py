"""The step that decides a transaction's outcome: EndTxn, and the aborts of the coordinator."""

from collections.abc import Callable
from typing import Final, NamedTuple

from kvorum.metadata.api import RequestError
from kvorum.transactions.transaction_metadata import EPOCH_OF_EACH_TRANSACTION, TransactionMetadata
from kvorum.transactions.transaction_state import TransactionState
from kvorum.transactions.transactional_ids import TransactionalIds
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records.batch import NO_PRODUCER

_OUTCOMES: Final = {
    True: TransactionState.COMPLETE_COMMIT,
    False: TransactionState.COMPLETE_ABORT,
}


class WantedEnd(NamedTuple):
    """A producer's EndTxn; `client_version` is the transaction.version that the request implies."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    client_version: int


def ended(
    ids: TransactionalIds,
    wanted: WantedEnd,
    now_ms: int,
    generate_producer_id: Callable[[], int],
) -> TransactionMetadata | None:
    """Return the next state of an id; None where the request repeats one that was done.

    Raises RequestError for a request that is refused.
    """
    if wanted.client_version >= EPOCH_OF_EACH_TRANSACTION:
        return _ended_with_next_epoch(ids, wanted, now_ms, generate_producer_id)
    return _ended_in_one_epoch(ids, wanted, now_ms)


def aborted_by_coordinator(
    metadata: TransactionMetadata,
    transaction_version: int,
    now_ms: int,
    generate_producer_id: Callable[[], int],
) -> TransactionMetadata:
    """Return the state with an open transaction aborted, and its producer fenced.

    `transaction_version` is the finalized one.
    """
    has_next_epoch = transaction_version >= EPOCH_OF_EACH_TRANSACTION
    fenced = metadata if has_next_epoch else metadata.fence_producer()
    return fenced.prepare_end(
        is_commit=False,
        client_version=EPOCH_OF_EACH_TRANSACTION if has_next_epoch else 0,
        next_producer_id=_next_producer_id(metadata, generate_producer_id)
        if has_next_epoch
        else NO_PRODUCER,
        now_ms=now_ms,
    )


def _ended_in_one_epoch(
    ids: TransactionalIds, wanted: WantedEnd, now_ms: int
) -> TransactionMetadata | None:
    metadata = ids.committed(wanted.transactional_id)
    if metadata is None or metadata.producer_id != wanted.producer_id:
        raise RequestError.with_default_message(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if metadata.producer_epoch != wanted.producer_epoch:
        raise RequestError.with_default_message(ErrorCode.PRODUCER_FENCED)
    metadata = ids.demand(wanted.transactional_id)
    if metadata.state is TransactionState.ONGOING:
        return metadata.prepare_end(
            is_commit=wanted.is_commit,
            client_version=wanted.client_version,
            next_producer_id=NO_PRODUCER,
            now_ms=now_ms,
        )
    if metadata.state is _OUTCOMES[wanted.is_commit]:
        return None
    raise RequestError.with_default_message(ErrorCode.INVALID_TXN_STATE)


def _ended_with_next_epoch(
    ids: TransactionalIds,
    wanted: WantedEnd,
    now_ms: int,
    generate_producer_id: Callable[[], int],
) -> TransactionMetadata | None:
    metadata = ids.demand(wanted.transactional_id)
    is_overflow = metadata.is_retry_after_overflow(wanted.producer_id, wanted.producer_epoch)
    if metadata.producer_id != wanted.producer_id and not is_overflow:
        raise RequestError.with_default_message(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_retry = is_overflow or metadata.producer_epoch == wanted.producer_epoch + 1
    is_current = metadata.producer_epoch == wanted.producer_epoch and not is_overflow
    is_complete = metadata.state in _OUTCOMES.values()
    if not is_current and not (is_complete and is_retry):
        raise RequestError.with_default_message(ErrorCode.PRODUCER_FENCED)
    if is_retry and metadata.state is _OUTCOMES[wanted.is_commit]:
        return None
    # A transaction without partitions may be aborted, and not committed.
    is_empty_abort = is_current and not wanted.is_commit
    if metadata.state is not TransactionState.ONGOING and not is_empty_abort:
        raise RequestError.with_default_message(ErrorCode.INVALID_TXN_STATE)
    return metadata.prepare_end(
        is_commit=wanted.is_commit,
        client_version=wanted.client_version,
        next_producer_id=_next_producer_id(metadata, generate_producer_id),
        now_ms=now_ms,
    )


def _next_producer_id(
    metadata: TransactionMetadata, generate_producer_id: Callable[[], int]
) -> int:
    return generate_producer_id() if metadata.is_epoch_exhausted else NO_PRODUCER
