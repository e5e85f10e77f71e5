"""The result of `transaction_state_record`: what is known of a transactional id."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.internal_topics.coordinator_records import TRANSACTION_STATE
from kvorum.internal_topics.states import TRANSACTION_STATES
from kvorum.spark.arrow_types import INT, INTS, LONG, TEXT, TIMESTAMP, timestamp_us
from kvorum.spark.functions.coordinator_rows import coordinator_function
from kvorum.spark.functions.record_function import Column, Field, field, structs, structs_of

COLUMNS: Final = (
    Column("transactional_id", TEXT),
    Column("producer_id", LONG),
    Column("previous_producer_id", LONG),
    Column("next_producer_id", LONG),
    Column("producer_epoch", INT),
    Column("next_producer_epoch", INT),
    Column("transaction_timeout_ms", INT),
    Column("transaction_status", TEXT),
    Column(
        "transaction_partitions", structs_of(Column("topic_name", TEXT), Column("partitions", INTS))
    ),
    Column("last_update_timestamp", TIMESTAMP),
    Column("start_timestamp", TIMESTAMP),
    Column("client_transaction_version", INT),
)

FIELDS: Final[Mapping[str, tuple[Field, ...]]] = MappingProxyType(
    {
        "TRANSACTION_LOG": (
            field("transactional_id", "key.transactionalId"),
            field("producer_id", "value.producerId"),
            field("previous_producer_id", "value.previousProducerId"),
            field("next_producer_id", "value.nextProducerId"),
            field("producer_epoch", "value.producerEpoch"),
            field("next_producer_epoch", "value.nextProducerEpoch"),
            field("transaction_timeout_ms", "value.transactionTimeoutMs"),
            field("transaction_status", "value.transactionStatus", TRANSACTION_STATES.get),
            field(
                "transaction_partitions",
                "value.transactionPartitions",
                structs({"topic_name": "topic", "partitions": "partitionIds"}),
            ),
            field("last_update_timestamp", "value.transactionLastUpdateTimestampMs", timestamp_us),
            field("start_timestamp", "value.transactionStartTimestampMs", timestamp_us),
            field("client_transaction_version", "value.clientTransactionVersion"),
        )
    }
)

TRANSACTION_STATE_RECORD: Final = coordinator_function(
    "kvorum_transaction_state_record", TRANSACTION_STATE, COLUMNS, FIELDS
)
