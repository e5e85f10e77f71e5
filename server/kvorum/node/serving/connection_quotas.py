"""Limits of a node's simultaneous connections, below its file descriptors.

As in Kafka's ConnectionQuotas there are four: of all connections to the listeners of a role
(``max.connections``), of those to one listener (``listener.name.NAME.max.connections``), and of
those from one address (``max.connections.per.ip``, and its overrides). Brokers reach each other
whatever clients do: their listener has places of its own (KIP-402), and so has the other role.
"""

from __future__ import annotations

import logging
import socket
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.metadata.config_definitions import (
    CONNECTIONS_OF_ADDRESSES,
    CONNECTIONS_PER_ADDRESS,
    check_connections_per_address,
)
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.node.clock import Clock
from kvorum.node.config import ConfigError, NodeConfig
from kvorum.node.config.errors import config_errors
from kvorum.node.config.settings import (
    CONNECTION_RATE,
    CONNECTIONS_MAX,
    NetworkSettings,
    network_settings,
)
from kvorum.node.config.values import NodeValues
from kvorum.node.errors import NodeStartError
from kvorum.node.events.log_event import LogEvent, RareEvents
from kvorum.node.open_file_limit import connection_count_max
from kvorum.node.serving.connection_rates import (
    AT_ONCE,
    TOO_MANY_WAIT,
    Admission,
    ConnectionRates,
    normalized,
    rate_limits,
)

RESERVED_SHARE: Final = 8
"""One in so many places is for the listener between brokers alone, and one for the controllers'."""
_LIMITS: Final = (
    CONNECTIONS_MAX,
    CONNECTIONS_PER_ADDRESS,
    CONNECTIONS_OF_ADDRESSES,
    CONNECTION_RATE,
)
"""The keys of limits, before some of which there may be a listener's name."""
_log = logging.getLogger(__name__)


class Limits(NamedTuple):
    """The maxima of simultaneous connections to the listeners of a role."""

    total_max: int
    """The connections of all clients together."""
    per_address_max: int
    overrides: Mapping[str, int] = MappingProxyType({})
    """The maxima of single addresses, in place of `per_address_max`."""
    of_listeners: Mapping[str, int] = MappingProxyType({})
    protected_listener: str | None = None
    """The listener between brokers, if it is one of several."""
    protected_count: int = 0
    """The connections that the protected listener may have beyond `total_max`."""

    def of_address(self, address: str) -> int:
        """Return the maximum of one address."""
        return self.overrides.get(address, self.per_address_max)

    def total_max_for(self, listener: str) -> int:
        """Return the number of all connections at which `listener` takes no other one."""
        is_protected = listener == self.protected_listener
        return self.total_max + self.protected_count if is_protected else self.total_max

    @property
    def place_count(self) -> int:
        """The number of connections, and so of descriptors, that all listeners may have."""
        return self.total_max + self.protected_count


class ConnectionQuotas:
    """Counts the open connections to the listeners of a role, and decides on each new one."""

    def __init__(self, limits: Limits, clock: Clock, rates: ConnectionRates | None = None) -> None:
        self._limits = limits
        self._rates = rates
        self._clock = clock
        self.total = 0
        """The number of open connections."""
        self._by_address: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._refusals = RareEvents()

    def admit(self, listener: str, address: str) -> bool:
        """Count one more connection from `address`; False, and uncounted, if that is too many."""
        address = normalized(address)
        limits = self._limits
        of_listener = limits.of_listeners.get(listener, limits.place_count)
        if (
            self.total >= limits.total_max_for(listener)
            or self._by_listener[listener] >= of_listener
            or self._by_address[address] >= limits.of_address(address)
        ):
            self._complain("too many are open", listener, address)
            return False
        self.total += 1
        self._by_address[address] += 1
        self._by_listener[listener] += 1
        return True

    def use(self, limits: Limits) -> None:
        """Let other limits count from the next connection on."""
        self._limits = limits

    def pace(self, listener: str, address: str) -> Admission:
        """Decide when an admitted connection is served, or closed because it exceeds its rate."""
        if self._rates is None:
            return AT_ONCE
        address = normalized(address)
        admission = self._rates.admit(listener, address, self._clock.monotonic_ms())
        if admission is TOO_MANY_WAIT:
            self._complain("too many wait for their turn", listener, address)
        return admission

    def release(self, listener: str, address: str) -> None:
        """Count one connection from `address` less."""
        address = normalized(address)
        self.total -= 1
        self._by_listener[listener] -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def _complain(self, reason: str, listener: str, address: str) -> None:
        suppressed_count = self._refusals.happened(self._clock.monotonic_ms())
        if suppressed_count is None:
            return
        _log.warning(
            LogEvent(
                f"Refused a connection: {reason}",
                client=address,
                listener=listener,
                others=suppressed_count or None,
                open=self.total,
                total_max=self._limits.total_max_for(listener),
                per_address_max=self._limits.of_address(address),
            )
        )


class _Role(NamedTuple):
    """The listeners of a role, and the connections that they may have together."""

    listeners: Collection[str]
    places: int
    protected: str | None

    def limits(self, network: NetworkSettings) -> Limits:
        """Return the limits without those of single addresses."""
        of_listeners = {
            name: maximum
            for name, maximum in network.connections_max_of_listeners.items()
            if name in self.listeners
        }
        protected_count = 0
        if self.protected is not None:
            protected_count = min(of_listeners[self.protected], self.places // RESERVED_SHARE)
        return Limits(
            total_max=min(network.connections_max, self.places - protected_count),
            per_address_max=network.connections_per_ip_max,
            of_listeners=of_listeners,
            protected_listener=self.protected,
            protected_count=protected_count,
        )


class NodeConnectionQuotas:
    """The quotas of each listener, which those of a role share; they follow the dynamic values.

    Raises NodeStartError for a host in ``max.connections.per.ip.overrides`` without an address.
    """

    def __init__(
        self, config: NodeConfig, image: Callable[[], MetadataImage], clock: Clock
    ) -> None:
        self._config = config
        self._texts: Mapping[str, str] = {}
        self._roles: list[tuple[_Role, ConnectionQuotas, ConnectionRates]] = []
        overrides = _overrides(config.network)
        for role in _roles(config):
            limits = role.limits(config.network)._replace(overrides=overrides)
            rates = ConnectionRates(
                rate_limits(config.network, role.listeners, role.protected),
                lambda: image().client_quotas,
            )
            self._roles.append((role, ConnectionQuotas(limits, clock, rates), rates))

    @property
    def total(self) -> int:
        """The number of open connections."""
        return sum(quotas.total for _, quotas, _ in self._roles)

    def of_listener(self, name: str) -> ConnectionQuotas:
        """Return the quotas of a listener."""
        return next(quotas for role, quotas, _ in self._roles if name in role.listeners)

    def on_image(self, image: MetadataImage) -> None:
        """Let the dynamic limits of an image count; those before stay where they are invalid."""
        own = image.configs.of(ResourceType.BROKER, str(self._config.node_id))
        dynamic = {**image.configs.of_cluster(), **own}
        texts = {key: text for key, text in dynamic.items() if key.endswith(_LIMITS)}
        if texts != self._texts:
            self._texts = texts
            self._use(texts)

    def _use(self, texts: Mapping[str, str]) -> None:
        try:
            values = NodeValues({**self._config.texts, **texts})
            with config_errors():
                check_connections_per_address(values.value_of)
            network = network_settings(values, self._config.listeners)
            overrides = _overrides(network)
        except (ConfigError, NodeStartError) as error:
            _log.error(LogEvent("Limits of connections stay as they were", error=str(error)))
            return
        for role, quotas, rates in self._roles:
            quotas.use(role.limits(network)._replace(overrides=overrides))
            rates.use(rate_limits(network, role.listeners, role.protected))


def connection_places(config: NodeConfig) -> int:
    """Return the number of connections, and so of descriptors, that a node may have."""
    return sum(role.limits(config.network).place_count for role in _roles(config))


def _roles(config: NodeConfig) -> Iterator[_Role]:
    """Yield the roles of a node, whose places together are all that there are."""
    brokers, controllers = (
        frozenset(listener.name for listener in role)
        for role in (config.listeners.brokers, config.listeners.controllers)
    )
    places = connection_count_max(has_logs=config.is_broker)
    if controllers:
        of_controllers = places // RESERVED_SHARE if brokers else places
        places -= of_controllers
        yield _Role(controllers, of_controllers, None)
    if brokers:
        name = config.listeners.inter_broker_name
        has_others = name in brokers and len(brokers) > 1
        yield _Role(brokers, places, name if has_others else None)


def _overrides(network: NetworkSettings) -> Mapping[str, int]:
    """Return the maxima of single addresses; raises NodeStartError for a host without one."""
    return {
        normalized(address): maximum
        for host, maximum in network.connections_per_ip_overrides.items()
        for address in _addresses(host)
    }


def _addresses(host: str) -> set[str]:
    try:
        found = socket.getaddrinfo(host, None)
    except (OSError, UnicodeError) as error:
        raise NodeStartError(
            f"max.connections.per.ip.overrides names a host without an address: {host}: {error}"
        ) from error
    return {str(place[0]) for *_, place in found}
