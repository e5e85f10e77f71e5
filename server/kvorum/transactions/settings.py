"""The settings of a transaction coordinator; times in milliseconds."""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionCoordinatorSettings:
    """The broker's configuration of transactional ids, with Kafka's defaults."""

    transactional_id_expiration_ms: Annotated[int, "transactional.id.expiration.ms"] = 604_800_000
    abort_timed_out_interval_ms: Annotated[
        int, "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    ] = 10_000
    remove_expired_interval_ms: Annotated[
        int, "transaction.remove.expired.transaction.cleanup.interval.ms"
    ] = 3_600_000
