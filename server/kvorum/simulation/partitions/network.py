"""The network between brokers and controllers: messages are late, out of order, lost, cut off."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from kvorum.simulation.events import Events

CONTROLLERS: Final = 0
"""The place of the controllers; brokers are at their ids, which are above it."""


class Network:
    """The links between places, which deliver calls or lose them."""

    def __init__(self, events: Events, random: Random, *, loss: float) -> None:
        self._events, self._random, self._loss = events, random, loss
        self._cut: set[frozenset[int]] = set()
        self.lost = 0

    def send(
        self, source: int, target: int, deliver: Callable[[], None], *, delay_ms: float = 0.0
    ) -> None:
        """Deliver a call after a delay, unless it is lost or the link is cut; calls may reorder."""
        if self._random.random() < self._loss:
            self.lost += 1
            return
        latency_ms = self._random.uniform(0.5, 8)
        if self._random.random() < 0.02:
            latency_ms += self._random.uniform(20, 600)
        link = frozenset((source, target))

        def arrive() -> None:
            if link in self._cut:
                self.lost += 1
            else:
                deliver()

        self._events.after(latency_ms + delay_ms, arrive)

    def cut(self, source: int, target: int) -> None:
        """Cut a link in both directions."""
        self._cut.add(frozenset((source, target)))

    def is_cut(self, source: int, target: int) -> bool:
        """Return whether a link is cut."""
        return frozenset((source, target)) in self._cut

    def mend(self, source: int, target: int) -> None:
        """End the cut of a link."""
        self._cut.discard(frozenset((source, target)))

    def heal(self) -> None:
        """End all cuts and losses."""
        self._cut.clear()
        self._loss = 0.0
