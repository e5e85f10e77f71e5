"""The rates at which clients may connect (KIP-402, KIP-612).

They are pure arithmetic, the time is a parameter. Three limits, as in Kafka's ConnectionQuotas: of
the whole node and of each listener (``max.connection.creation.rate``), and of each client address
(the client quota ``connection_creation_rate``). A connection above the rate of the node or a
listener is served later, one after the other; a connection above the rate of its address is closed
after a while, unserved, so that the client does not connect again at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.broker.quota.rate import MetricConfig, Rate, bounded_throttle_time_ms
from kvorum.metadata.configs_image import IP, ClientQuotasImage
from kvorum.metadata.unused_quotas import UnusedQuotas
from kvorum.node.config.settings import NetworkSettings

CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
UNLIMITED: Final = 2**31 - 1
"""The rate that means no limit, the default of every limit."""
WINDOWS: Final = MetricConfig(sample_count=11, window_ms=1000.0)
WAITING_MAX: Final = 50
"""Kafka's default of ``socket.listen.backlog.size``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """Limits in connections per second, and the windows in which connections are counted.

    `of_listeners` lacks listeners without a limit. `protected_listener` is the inter-broker
    listener, whose connections do not count for the node; None if it is the only listener. So many
    connections of a listener as `waiting_max` may wait for their turn, as many as wait in Kafka for
    the one thread that accepts.
    """

    of_node: int = UNLIMITED
    of_listeners: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    protected_listener: str | None = None
    waiting_max: int = WAITING_MAX
    windows: MetricConfig = WINDOWS


class Admission(NamedTuple):
    """The decision on a connection: it waits for `wait_ms`, then is served or closed unserved."""

    wait_ms: float
    is_served: bool


AT_ONCE: Final = Admission(0.0, is_served=True)
TOO_MANY_WAIT: Final = Admission(0.0, is_served=False)


class ConnectionRates:
    """Counts the connections of a node, and decides on each new one."""

    def __init__(self, limits: RateLimits, quotas: Callable[[], ClientQuotasImage]) -> None:
        self._limits = limits
        self._quotas = quotas
        self._of_node = self._new_rate()
        self._of_listeners: dict[str, Rate] = {}
        self._of_addresses: dict[str, Rate] = {}
        self._unused = UnusedQuotas()
        self._turns_ms: dict[str, deque[float]] = {}
        """When the connections of a listener that wait are served, in this order."""
        self._address_limits = AddressLimits.of(quotas())

    def admit(self, listener: str, address: str, now_ms: float) -> Admission:
        """Decide on a connection; those of one listener are admitted one after the other.

        `address` is a normalized one.
        """
        turns_ms = self._turns_ms.setdefault(listener, deque())
        while turns_ms and turns_ms[0] <= now_ms:
            turns_ms.popleft()
        if len(turns_ms) >= self._limits.waiting_max:
            return TOO_MANY_WAIT
        begin_ms = turns_ms[-1] if turns_ms else now_ms
        taken_ms = begin_ms + self._shared_throttle_ms(listener, begin_ms)
        if taken_ms > now_ms:
            turns_ms.append(taken_ms)
        throttle_ms = self._address_throttle_ms(address, taken_ms)
        if throttle_ms > 0:
            self._take_back(listener, taken_ms)
            return Admission(taken_ms - now_ms + throttle_ms, is_served=False)
        return Admission(taken_ms - now_ms, is_served=True) if taken_ms > now_ms else AT_ONCE

    def use(self, limits: RateLimits) -> None:
        """Let other limits count from the next connection on."""
        self._limits = limits

    def _shared_throttle_ms(self, listener: str, now_ms: float) -> float:
        """Count a connection for node and listener; return how long it has to wait."""
        throttle_ms = 0.0
        for rate, limit in self._shared(listener):
            at_ms = max(now_ms, rate.last_ms)
            rate.record(1.0, at_ms)
            throttle_ms = max(throttle_ms, self._throttle_ms(rate, limit, at_ms))
        return throttle_ms

    def _address_throttle_ms(self, address: str, now_ms: float) -> float:
        """Count a connection for its address unless it exceeds the rate; return its wait."""
        limit = self._current_address_limits().limit(address)
        if limit == UNLIMITED:
            return 0.0
        rate = self._of_addresses.get(address)
        if rate is None:
            self._unused.forget(self._of_addresses, lambda known: known.last_ms, now_ms)
            rate = self._of_addresses[address] = self._new_rate()
        at_ms = max(now_ms, rate.last_ms)
        rate.record(1.0, at_ms)
        throttle_ms = self._throttle_ms(rate, limit, at_ms)
        if throttle_ms > 0:
            rate.record(-1.0, at_ms)
        return throttle_ms

    def _throttle_ms(self, rate: Rate, limit: int, now_ms: float) -> float:
        return bounded_throttle_time_ms(rate, limit, now_ms, max_ms=self._limits.windows.window_ms)

    def _take_back(self, listener: str, now_ms: float) -> None:
        for rate, _ in self._shared(listener):
            rate.record(-1.0, max(now_ms, rate.last_ms))

    def _shared(self, listener: str) -> list[tuple[Rate, int]]:
        """Return the limits that all clients of a listener share."""
        shared: list[tuple[Rate, int]] = []
        if self._limits.of_node != UNLIMITED and listener != self._limits.protected_listener:
            shared.append((self._of_node, self._limits.of_node))
        limit = self._limits.of_listeners.get(listener)
        if limit is not None:
            rate = self._of_listeners.setdefault(listener, self._new_rate())
            shared.append((rate, limit))
        return shared

    def _current_address_limits(self) -> AddressLimits:
        quotas = self._quotas()
        if self._address_limits.source is not quotas:
            self._address_limits = AddressLimits.of(quotas)
        return self._address_limits

    def _new_rate(self) -> Rate:
        return Rate(self._limits.windows)


class AddressLimits(NamedTuple):
    """The connection rates of addresses, and the metadata from which they are read."""

    source: ClientQuotasImage
    default: int
    of_addresses: Mapping[str, int]

    @classmethod
    def of(cls, quotas: ClientQuotasImage) -> AddressLimits:
        """Return the limits in `quotas`; host names are not resolved."""
        rates: dict[str | None, int] = {}
        for entity, values in quotas.entities.items():
            rate = values.get(CONNECTION_CREATION_RATE)
            if rate is not None and len(entity) == 1 and entity[0][0] == IP:
                name = entity[0][1]
                rates[None if name is None else normalized(name)] = int(rate)
        default = rates.pop(None, UNLIMITED)
        named = {name: rate for name, rate in rates.items() if name is not None}
        return cls(quotas, default, MappingProxyType(named))

    def limit(self, address: str) -> int:
        """Return the limit of an address: its own, else the default."""
        return self.of_addresses.get(address, self.default)


def normalized(address: str) -> str:
    """Return the canonical form of an address; an IPv4-mapped address becomes an IPv4 address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return str(parsed if mapped is None else mapped)


def rate_limits(
    network: NetworkSettings, listeners: Collection[str], protected: str | None
) -> RateLimits:
    """Return the limits of connection rates of one role's listeners; `protected` is one of them."""
    return RateLimits(
        of_node=network.connection_rate_max,
        of_listeners={
            name: rate
            for name, rate in network.connection_rates_max.items()
            if rate != UNLIMITED and name in listeners
        },
        protected_listener=protected,
        waiting_max=network.listen_backlog,
        windows=network.quota_windows,
    )
