"""An operation that waits for its commit (Kafka's CoordinatorWriteEvent)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from kvorum.metadata.api import RequestError

Response = TypeVar("Response")
Then: TypeAlias = Callable[[Response | RequestError], None]
"""Takes the response of an operation, or its error. It must not call the coordinator."""


@dataclass(slots=True, eq=False)
class CoordinatorWriteEvent(Generic[Response]):
    """An operation from its decision until it is committed; a `timeout_ms` of None is the usual."""

    response: Response
    then: Then[Response]
    timeout_ms: int | None = None
    is_over: bool = False

    def complete(self, error: RequestError | None) -> None:
        """Answer with the response or an error, unless it was answered before."""
        if self.is_over:
            return
        self.is_over = True
        self.then(self.response if error is None else error)
