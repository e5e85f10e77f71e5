"""The step of AddPartitionsToTxn and AddOffsetsToTxn, and the question of a partition's leader."""

from collections.abc import Mapping
from typing import NamedTuple

from kvorum.metadata.api import RequestError
from kvorum.transactions.transaction_metadata import TransactionMetadata, TransactionPartition
from kvorum.transactions.transaction_state import TransactionState
from kvorum.transactions.transactional_ids import TransactionalIds
from kvorum.wire.error_codes import ErrorCode


class WantedPartitions(NamedTuple):
    """Partitions for a producer's transaction.

    `client_version` is the transaction.version that the request implies.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TransactionPartition]
    client_version: int


def with_partitions(
    ids: TransactionalIds, wanted: WantedPartitions, now_ms: int
) -> TransactionMetadata | None:
    """Return the next state of an id; None where the transaction has the partitions already.

    Raises RequestError for a producer that may not add any.
    """
    metadata = ids.demand(wanted.transactional_id)
    _require_producer(metadata, wanted)
    is_open = metadata.state is TransactionState.ONGOING
    if is_open and wanted.partitions <= metadata.partitions:
        return None
    return metadata.add_partitions(wanted.partitions, wanted.client_version, now_ms)


def verified(
    ids: TransactionalIds, wanted: WantedPartitions
) -> Mapping[TransactionPartition, ErrorCode]:
    """Return a code for each partition; a step that is under way does not matter.

    Raises RequestError for a producer that has no open transaction.
    """
    metadata = ids.committed(wanted.transactional_id)
    if metadata is None:
        raise RequestError.with_default_message(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    _require_producer(metadata, wanted)
    if metadata.state.is_prepared:
        raise RequestError.with_default_message(ErrorCode.CONCURRENT_TRANSACTIONS)
    return {
        partition: ErrorCode.NONE
        if partition in metadata.partitions
        else ErrorCode.TRANSACTION_ABORTABLE
        for partition in wanted.partitions
    }


def _require_producer(metadata: TransactionMetadata, wanted: WantedPartitions) -> None:
    if metadata.producer_id != wanted.producer_id:
        raise RequestError.with_default_message(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if metadata.producer_epoch != wanted.producer_epoch:
        raise RequestError.with_default_message(ErrorCode.PRODUCER_FENCED)
