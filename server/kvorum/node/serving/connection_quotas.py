"""Limits of a node's connections, below its file descriptors so that these never run out."""

import logging
import socket
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from kvorum.node.clock import Clock
from kvorum.node.config import NodeConfig
from kvorum.node.errors import NodeStartError
from kvorum.node.events.log_event import LogEvent, RareEvents
from kvorum.node.open_file_limit import connection_count_max
from kvorum.node.serving.connection_rates import (
    AT_ONCE,
    UNLIMITED,
    Admission,
    ConnectionRates,
    RateLimits,
)

_log = logging.getLogger(__name__)


class Limits(NamedTuple):
    """The maximum of simultaneous connections: of all clients together, and of one address."""

    total_max: int
    per_address_max: int
    overrides: Mapping[str, int] = MappingProxyType({})
    """The maximum of single addresses, in place of `per_address_max`."""

    def of(self, address: str) -> int:
        """Return the maximum of one address."""
        return self.overrides.get(address, self.per_address_max)


class ConnectionQuotas:
    """Counts the open connections of a node and decides whether another one is admitted."""

    def __init__(self, limits: Limits, clock: Clock, rates: ConnectionRates | None = None) -> None:
        self._limits = limits
        self._rates = rates
        self._clock = clock
        self.total = 0
        """The number of open connections."""
        self._by_address: Counter[str] = Counter()
        self._refusals = RareEvents()

    def admit(self, address: str) -> bool:
        """Count one more connection from `address`; False, and uncounted, if that is too many."""
        if self.total >= self._limits.total_max or self._by_address[address] >= self._limits.of(
            address
        ):
            self._complain(address)
            return False
        self.total += 1
        self._by_address[address] += 1
        return True

    def pace(self, listener: str, address: str) -> Admission:
        """Decide when an admitted connection is served, or closed because it exceeds its rate."""
        if self._rates is None:
            return AT_ONCE
        return self._rates.admit(listener, address, self._clock.monotonic_ms())

    def release(self, address: str) -> None:
        """Count one connection from `address` less."""
        self.total -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def _complain(self, address: str) -> None:
        suppressed_count = self._refusals.happened(self._clock.monotonic_ms())
        if suppressed_count is None:
            return
        _log.warning(
            LogEvent(
                "Refused a connection: too many are open",
                client=address,
                others=suppressed_count or None,
                open=self.total,
                total_max=self._limits.total_max,
                per_address_max=self._limits.of(address),
            )
        )


def usable_limits(
    *,
    total_max: int,
    per_address_max: int,
    has_logs: bool,
    overrides: Mapping[str, int] = MappingProxyType({}),
) -> Limits:
    """Return the configured limits, lowered to what this process's descriptors allow.

    `overrides` are those of hosts, by name or address; NodeStartError for one without an address.
    """
    by_address = {
        address: maximum for host, maximum in overrides.items() for address in _addresses(host)
    }
    return Limits(connection_count_max(total_max, has_logs=has_logs), per_address_max, by_address)


def _addresses(host: str) -> set[str]:
    try:
        found = socket.getaddrinfo(host, None)
    except OSError as error:
        raise NodeStartError(
            f"max.connections.per.ip.overrides names a host without an address: {host}: {error}"
        ) from error
    return {str(place[0]) for *_, place in found}


def rate_limits(config: NodeConfig) -> RateLimits:
    """Return the limits of connection rates in a node's configuration."""
    network, listeners = config.network, config.listeners
    has_others = len(listeners.bound) > 1
    return RateLimits(
        of_node=network.connection_rate_max,
        of_listeners={
            name: rate for name, rate in network.connection_rates_max.items() if rate != UNLIMITED
        },
        protected_listener=listeners.inter_broker_name if has_others else None,
        windows=network.quota_windows,
    )
