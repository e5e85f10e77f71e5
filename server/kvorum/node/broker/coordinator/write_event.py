"""An operation that waits for its commit (Kafka's CoordinatorWriteEvent)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from kvorum.metadata.api import RequestError
from kvorum.node.runtime import Timer
from kvorum.wire.error_codes import ErrorCode

Response = TypeVar("Response")
Then: TypeAlias = Callable[[Response | RequestError], None]
"""Takes the response of an operation, or its error. It must not call the coordinator."""


@dataclass(slots=True, eq=False)
class CoordinatorWriteEvent(Generic[Response]):
    """An operation from its append until it is committed."""

    response: Response
    then: Then[Response]
    timeout: Timer | None = None
    is_over: bool = False

    def complete(self, error: RequestError | None) -> None:
        """Answer with the response or an error, unless it was answered before."""
        if self.is_over:
            return
        self.is_over = True
        if self.timeout is not None:
            self.timeout.cancel()
        self.then(self.response if error is None else error)

    def expire(self) -> None:
        """Answer that the operation has waited for too long."""
        self.complete(RequestError.with_default_message(ErrorCode.REQUEST_TIMED_OUT))
