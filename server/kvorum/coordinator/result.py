"""The result of a request or a timeout in a shard (Kafka's CoordinatorResult)."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kvorum.coordinator.effects import Effects
from kvorum.coordinator.record import CoordinatorRecord
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode

Response_co = TypeVar("Response_co", covariant=True)


class Append(Protocol):
    """The consequence in a shard of records that are committed, or are not."""

    def completed(self, now_ms: int, /) -> None:
        """Act on the records being committed."""
        ...

    def failed(self, error: ErrorCode, now_ms: int, /) -> None:
        """Act on the records not being in the log, or not in time."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorResult(Generic[Response_co]):
    """The result of a request or a timeout in a shard; the package's docstring says what to do.

    `response` is None where promises carry the answer, and where `error` refuses the request.
    Records that are not atomic may be spread over several batches. `commit_timeout_ms` is the time
    in which the records have to be committed, None for that of the coordinator.
    """

    effects: Effects
    response: Response_co | None = None
    error: RequestError | None = None
    records: tuple[CoordinatorRecord, ...] = ()
    append: Append | None = None
    replay_records: bool = True
    is_atomic: bool = True
    commit_timeout_ms: int | None = None
