"""The settings of a leader that asks coordinators of transactions (AddPartitionsToTxnConfig)."""

from __future__ import annotations

from dataclasses import dataclass

from kvorum.node.config.values import BrokerValues


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """The number of tries to add a partition that cannot be added yet, and their time."""

    add_partitions_retry_backoff_ms: int
    add_partitions_retry_backoff_ms_max: int


def transaction_settings(values: BrokerValues) -> TransactionSettings:
    """Read the keys of adding partitions to transactions."""
    return TransactionSettings(
        add_partitions_retry_backoff_ms=values.integer("add.partitions.to.txn.retry.backoff.ms"),
        add_partitions_retry_backoff_ms_max=values.integer(
            "add.partitions.to.txn.retry.backoff.max.ms"
        ),
    )
