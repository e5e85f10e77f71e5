"""The shard of a coordinator (Kafka's CoordinatorShard)."""

from typing import Protocol, TypeVar

from kvorum.coordinator.effects import Effects, Timeout
from kvorum.coordinator.record import CoordinatorRecord
from kvorum.coordinator.result import Append, CoordinatorResult
from kvorum.coordinator.timeline import Timeline
from kvorum.wire.error_codes import ErrorCode


class CoordinatorShard(Protocol):
    """The fold of one partition of an internal topic; pure.

    Requests are methods that the protocol does not have: each gives a `CoordinatorResult`. All
    times are milliseconds since 1970, and a `producer_id` is -1 outside of a transaction.
    """

    @property
    def timeline(self) -> Timeline:
        """The offsets that are written and committed, and what takes the state back to them."""
        ...

    @property
    def needs_latest_records_alone(self) -> bool:
        """Whether a record replaces whatever earlier ones say of its key, and of no other."""
        ...

    def load_record(
        self, offset: int, producer_id: int, key: bytes, value: bytes | None, now_ms: int, /
    ) -> None:
        """Decode and apply a record of the log; skip one of an unknown type.

        Raises `DamagedRecordError` for one that cannot be read.
        """
        ...

    def replay(
        self, offset: int, producer_id: int, record: CoordinatorRecord, now_ms: int, /
    ) -> None:
        """Apply a record of a result, which is at `offset` in the log."""
        ...

    def replay_end_transaction_marker(self, producer_id: int, /, *, is_commit: bool) -> None:
        """Apply the marker that ends a producer's transaction."""
        ...

    def on_loaded(self, now_ms: int, /) -> Effects:
        """Begin to lead: all records of the log have been applied."""
        ...

    def on_timeout(self, timeout: Timeout, now_ms: int, /) -> CoordinatorResult[None]:
        """Act on a timer that has fired."""
        ...

    def append_completed(self, append: Append, now_ms: int, /) -> Effects:
        """Act on a result's records being committed."""
        ...

    def append_failed(self, append: Append, error: ErrorCode, now_ms: int, /) -> Effects:
        """Act on a result's records not having come into the log, or not in time."""
        ...

    def on_unloaded(self, now_ms: int, /) -> Effects:
        """Cease to lead: give an answer to each promise that was not kept."""
        ...


ShardT = TypeVar("ShardT", bound=CoordinatorShard)
"""The shard of a coordinator that is driven."""
