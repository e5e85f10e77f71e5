"""Kafka's DeferredEventQueue: responses that wait until their records are committed."""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

Error = TypeVar("Error", bound=Exception)


class DeferredEventQueue(Generic[Error]):
    """Events in the order of the offsets that they wait for.

    An event is called with None once its offset is stable, or else with an error.
    """

    def __init__(self) -> None:
        self._pending: deque[tuple[int, Callable[[Error | None], None]]] = deque()

    def add(self, offset: int, event: Callable[[Error | None], None]) -> None:
        """Have an event wait for `offset`; offsets never go down."""
        self._pending.append((offset, event))

    def complete_up_to(self, offset: int) -> None:
        """Complete the events that wait for `offset` or for one before it."""
        while self._pending and self._pending[0][0] <= offset:
            _, event = self._pending.popleft()
            event(None)

    def fail_all(self, error: Error) -> None:
        """Complete all events with `error`."""
        while self._pending:
            _, event = self._pending.popleft()
            event(error)
