"""How many connections a node takes: fewer than it has file descriptors, so it never runs dry."""

from __future__ import annotations

import logging
import resource
from collections import Counter
from dataclasses import dataclass

from kvorum.node.events.event import Event
from kvorum.node.events.rare_events import RareEvents
from kvorum.node.raft import Clock

RESERVED_DESCRIPTORS = 128
"""Kept for the log, snapshots, connections to other nodes and whatever the process opens."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """The most connections at once: of all clients together, and of one address."""

    total_max: int
    per_address_max: int


class ConnectionLimits:
    """Counts the open connections of a node and says when there are too many."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._total = 0
        self._by_address: Counter[str] = Counter()
        self._refusals = RareEvents()

    @property
    def total(self) -> int:
        """How many connections are open."""
        return self._total

    def admit(self, address: str) -> bool:
        """Count one more connection from `address`; False, uncounted, where that is too many."""
        if (
            self._total >= self._limits.total_max
            or self._by_address[address] >= self._limits.per_address_max
        ):
            self._complain(address)
            return False
        self._total += 1
        self._by_address[address] += 1
        return True

    def release(self, address: str) -> None:
        """Count one connection less."""
        self._total -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def _complain(self, address: str) -> None:
        untold_count = self._refusals.happened(self._clock.monotonic_ms())
        if untold_count is None:
            return
        _log.warning(
            Event(
                "Refused a connection: too many are open",
                client=address,
                others=untold_count or None,
                open=self._total,
                total_max=self._limits.total_max,
                per_address_max=self._limits.per_address_max,
            )
        )


def usable_limits(*, total_max: int, per_address_max: int) -> Limits:
    """Return the configured limits, lowered to what this process's descriptors allow."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return Limits(total_max, per_address_max)
    usable = max(descriptors - RESERVED_DESCRIPTORS, descriptors // 2)
    return Limits(min(total_max, usable), per_address_max)


def raise_descriptor_limit() -> None:
    """Let this process open as many files as the system allows it at all."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
