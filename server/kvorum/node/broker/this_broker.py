"""A broker, as its own parts know it."""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from kvorum.metadata.image import MetadataImage
from kvorum.node.coroutines import Task, Wait
from kvorum.node.runtime import ThreadedRuntime
from kvorum.wire.primitives import Message

Response = TypeVar("Response", bound=Message)


class ControllerChannel(Protocol):
    """The way to the active controller."""

    def send(self, message: Message, kind: type[Response]) -> Awaitable[Response]:
        """Send a request and return its response, for a coroutine on the runtime.

        Raises ControllerUnreachableError when its time is over, and NoCommonVersionError.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ThisBroker:
    """The id, the epoch of the registration, the published image, and the time to run in.

    `on_failure` ends a broker that cannot go on.
    """

    id: int
    epoch: Callable[[], int]
    image: Callable[[], MetadataImage]
    runtime: ThreadedRuntime
    on_failure: Callable[[Exception], None]

    def run(self, coroutine: Coroutine[Wait[Any], Any, None]) -> Task[None]:
        """Run something until it is closed; an error ends the broker."""
        return Task(coroutine, self._on_end)

    def _on_end(self, result: Exception | None) -> None:
        if result is not None:
            self.on_failure(result)
