"""Records of ``__transaction_state`` (Kafka's TransactionLog)."""

from typing import Final

from kvorum.coordinator.record import (
    KEY_VERSION,
    CoordinatorRecord,
    DamagedRecordError,
    decoded,
    record_type,
    value_version,
)
from kvorum.transactions.transaction_metadata import TransactionMetadata, TransactionPartition
from kvorum.transactions.transaction_state import TransactionState
from kvorum.wire.messages.transaction_log_key import TransactionLogKey
from kvorum.wire.messages.transaction_log_value import TransactionLogValue

FIRST_VERSION_WITH_FLEXIBLE_RECORDS: Final = 1
"""The transaction.version from which the fields of KIP-890 are in the records."""


def transaction_record(
    metadata: TransactionMetadata, transaction_version: int
) -> CoordinatorRecord:
    """Return the record of an id in a cluster with a finalized transaction.version."""
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state.value,
        transaction_partitions=None
        if metadata.state is TransactionState.EMPTY
        else [
            TransactionLogValue.PartitionsSchema(topic, partition_ids)
            for topic, partition_ids in metadata.indexes_by_topic.items()
        ],
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
    )
    if transaction_version < FIRST_VERSION_WITH_FLEXIBLE_RECORDS:
        return CoordinatorRecord(TransactionLogKey(metadata.transactional_id), value, 0)
    value.previous_producer_id = metadata.previous_producer_id
    value.next_producer_id = metadata.next_producer_id
    value.client_transaction_version = metadata.client_version
    return CoordinatorRecord(TransactionLogKey(metadata.transactional_id), value, 1)


def transaction_tombstone(transactional_id: str) -> CoordinatorRecord:
    """Return the record that ends an id."""
    return CoordinatorRecord(TransactionLogKey(transactional_id))


def decode_record(key: bytes, value: bytes | None) -> CoordinatorRecord | None:
    """Return a record of the log; None for one of a type that the reference does not know.

    Raises `DamagedRecordError` for bytes that cannot be read.
    """
    if record_type(key) != TransactionLogKey.API_KEY:
        return None
    decoded_key = decoded(TransactionLogKey, key, KEY_VERSION)
    if value is None:
        return CoordinatorRecord(decoded_key)
    version = value_version(value)
    return CoordinatorRecord(decoded_key, decoded(TransactionLogValue, value, version), version)


def metadata_of_record(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
    """Return what a record says of an id; raises `DamagedRecordError` for an unknown state."""
    try:
        state = TransactionState(value.transaction_status)
    except ValueError as error:
        raise DamagedRecordError(
            f"transactional id {transactional_id}: state {value.transaction_status} is unknown"
        ) from error
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TransactionPartition(one.topic, index)
            for one in value.transaction_partitions or ()
            for index in one.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )
