"""The listeners of a node: bound and advertised ones, the broker's and the controller's."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from types import MappingProxyType
from typing import Annotated

from kvorum.metadata.address import Address
from kvorum.metadata.config_definitions import (
    QuorumVoterEntry,
    parse_map,
    parse_quorum_voters,
    read_settings,
)
from kvorum.node.config.errors import ConfigError, config_errors
from kvorum.node.config.values import NodeValues
from kvorum.security.security_protocol import SecurityProtocol

_ENDPOINT = re.compile(r"(?P<name>.*)://\[?(?P<host>[0-9a-zA-Z\-%._:]*)\]?:(?P<port>-?[0-9]+)\Z")
_INT_MAX = 2**31 - 1
_ANY_HOST = "0.0.0.0"  # noqa: S104 - compared with, never bound
_PROTOCOL_MAP = "listener.security.protocol.map"
_INTER_BROKER_NAME = "inter.broker.listener.name"
_INTER_BROKER_PROTOCOL = "security.inter.broker.protocol"


@dataclass(frozen=True, slots=True)
class Listener:
    """One listener: name, protocol and address; a `host` of None means every interface.

    Port 0 lets the system choose; the advertised port is then known only after binding.
    """

    name: str
    protocol: SecurityProtocol
    host: str | None
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{Address(self.host or '', self.port)}"


def parse_protocol(text: str, key: str) -> SecurityProtocol:
    """Read the name of a security protocol; `key` is for the error message."""
    try:
        return SecurityProtocol[text.upper()]
    except KeyError:
        raise ConfigError(f"Invalid security protocol `{text}` defined in {key}") from None


def parse_listeners(
    entries: Sequence[str],
    protocols: Mapping[str, SecurityProtocol],
    *,
    must_have_own_ports: bool = True,
) -> tuple[Listener, ...]:
    """Read ``NAME://host:port`` entries; names are put in upper case and must differ."""
    shown = f"[{', '.join(entries)}]"
    try:
        listeners = tuple(_parse_listener(entry, protocols) for entry in entries)
        if len({listener.name for listener in listeners}) != len(listeners):
            raise ConfigError(f"Each listener must have a different name, listeners: {shown}")
        if must_have_own_ports:
            _check_ports(listeners, shown)
    except ConfigError as error:
        raise ConfigError(f"Error creating broker listeners from '{shown}': {error}") from error
    return listeners


def _parse_listener(entry: str, protocols: Mapping[str, SecurityProtocol]) -> Listener:
    match = _ENDPOINT.match(entry)
    if match is None:
        raise ConfigError(f"Unable to parse {entry} to a broker endpoint")
    name = match["name"].upper()
    digits = match["port"]
    if len(digits) > 11 or not -_INT_MAX - 1 <= int(digits) <= _INT_MAX:
        raise ConfigError(f'For input string: "{digits}"')
    if name not in protocols:
        raise ConfigError(f"No security protocol defined for listener {name}")
    return Listener(name, protocols[name], match["host"] or None, int(digits))


def _check_ports(listeners: Iterable[Listener], shown: str) -> None:
    """Check that two listeners share a port only as one IPv4 and one IPv6 address."""
    by_port: dict[int, list[Listener]] = defaultdict(list)
    for listener in listeners:
        if listener.port != 0:
            by_port[listener.port].append(listener)
    for port, sharing in by_port.items():
        if len(sharing) > 1:
            _check_shared_port(port, sharing, shown)


def _check_shared_port(port: int, sharing: Sequence[Listener], shown: str) -> None:
    versions = [_ip_version(listener.host) for listener in sharing]
    named = versions.count(None)
    if named > 1:
        raise ConfigError(f"Each listener must have a different port, listeners: {shown}")
    if len(versions) - named > 2:
        raise ConfigError(
            "Each listener must have a different port unless exactly one listener has an IPv4 "
            f"address and the other IPv6 address, listeners: {shown}, port: {port}"
        )
    if set(versions) != {4, 6}:
        raise ConfigError(
            "If you have two listeners on the same port then one needs to be IPv4 and the other "
            f"IPv6, listeners: {shown}, port: {port}"
        )


def _ip_version(host: str | None) -> int | None:
    try:
        return ip_address(host or "").version
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerKeys:
    """The keys about listeners as a properties file has them; `Listeners` follow from them."""

    entries: Annotated[tuple[str, ...], "listeners"]
    advertised: Annotated[tuple[str, ...] | None, "advertised.listeners"]
    controller_names: Annotated[tuple[str, ...], "controller.listener.names"]
    protocols: Annotated[str, _PROTOCOL_MAP]
    inter_broker_name: Annotated[str | None, _INTER_BROKER_NAME]
    inter_broker_protocol: Annotated[str, _INTER_BROKER_PROTOCOL]


@dataclass(frozen=True, slots=True)
class Listeners:
    """Every listener of a node.

    `bound` are the sockets to open. `advertised_brokers` and `advertised_controllers` are published
    to clients and nodes: a host of None there means the name of this machine, a port of 0 the port
    that the bound listener of the same name got.
    """

    bound: tuple[Listener, ...]
    advertised_brokers: tuple[Listener, ...]
    advertised_controllers: tuple[Listener, ...]
    controller_names: tuple[str, ...]
    protocols: Mapping[str, SecurityProtocol]
    inter_broker_name: str
    inter_broker_protocol: SecurityProtocol

    @property
    def controllers(self) -> tuple[Listener, ...]:
        """The bound listeners that belong to the controller."""
        return tuple(each for each in self.bound if each.name in self.controller_names)

    @property
    def brokers(self) -> tuple[Listener, ...]:
        """The bound listeners that belong to the broker."""
        return tuple(each for each in self.bound if each.name not in self.controller_names)


def parse_node_listeners(values: NodeValues) -> Listeners:
    """Read the keys about listeners, without a check whether they suit the node's roles."""
    keys = read_settings(ListenerKeys, values.value_of)
    controller_names = keys.controller_names
    protocols = _protocols(keys, is_map_set=values.is_set(_PROTOCOL_MAP))
    bound = parse_listeners(keys.entries, protocols)
    advertised = (
        None
        if keys.advertised is None
        else parse_listeners(keys.advertised, protocols, must_have_own_ports=False)
    )
    inter_broker_name, inter_broker_protocol = _inter_broker(
        keys, protocols, is_protocol_set=values.is_set(_INTER_BROKER_PROTOCOL)
    )
    return Listeners(
        bound=bound,
        advertised_brokers=tuple(
            each
            for each in (bound if advertised is None else advertised)
            if each.name not in controller_names
        ),
        advertised_controllers=_advertised_controllers(
            values, controller_names, bound=bound, advertised=advertised or ()
        ),
        controller_names=controller_names,
        protocols=MappingProxyType(protocols),
        inter_broker_name=inter_broker_name,
        inter_broker_protocol=inter_broker_protocol,
    )


def _protocols(keys: ListenerKeys, *, is_map_set: bool) -> dict[str, SecurityProtocol]:
    """Return each listener's protocol; without a map, controller listeners are plain text.

    This default does not apply if any listener is named after SSL or SASL: then each controller
    listener needs its own entry.
    """
    with config_errors():
        pairs = parse_map(_PROTOCOL_MAP, keys.protocols)
    protocols = {name.upper(): parse_protocol(text, _PROTOCOL_MAP) for name, text in pairs.items()}
    if is_map_set:
        return protocols
    names = {*keys.controller_names, *map(_name_of, keys.entries)}
    if names.isdisjoint({"SSL", "SASL_SSL", "SASL_PLAINTEXT"}):
        for name in keys.controller_names:
            protocols[name] = SecurityProtocol.PLAINTEXT
    return protocols


def _name_of(entry: str) -> str:
    name, colon, _ = entry.partition(":")
    if not colon:
        raise ConfigError(f"Unable to parse a listener name from {entry}")
    return name.upper()


def _inter_broker(
    keys: ListenerKeys, protocols: Mapping[str, SecurityProtocol], *, is_protocol_set: bool
) -> tuple[str, SecurityProtocol]:
    name = keys.inter_broker_name
    if name is None:
        protocol = parse_protocol(keys.inter_broker_protocol, _INTER_BROKER_PROTOCOL)
        return protocol.name, protocol
    if is_protocol_set:
        raise ConfigError(
            f"Only one of {_INTER_BROKER_NAME} and {_INTER_BROKER_PROTOCOL} should be set."
        )
    if name.upper() not in protocols:
        raise ConfigError(
            f"Listener with name {name.upper()} defined in {_INTER_BROKER_NAME} not found in "
            f"{_PROTOCOL_MAP}."
        )
    return name.upper(), protocols[name.upper()]


def _advertised_controllers(
    values: NodeValues,
    controller_names: tuple[str, ...],
    *,
    bound: tuple[Listener, ...],
    advertised: tuple[Listener, ...],
) -> tuple[Listener, ...]:
    """Return the advertised listener of each controller name, the default (first) one first.

    The default listener, if it is bound to every interface and not advertised, takes the address
    of this node in `controller.quorum.voters`.
    """
    found: list[Listener] = []
    for position, name in enumerate(controller_names):
        own = _named(advertised, name) if name in controller_names else None
        if own is not None:
            found.append(own)
            continue
        listener = _named(bound, name)
        if listener is None or listener.name not in controller_names:
            continue
        voter = _own_voter(values) if position == 0 and listener.host in {None, _ANY_HOST} else None
        if voter is not None:
            listener = replace(listener, host=voter.host, port=voter.port)
        elif listener.host == _ANY_HOST:
            listener = replace(listener, host=None)
        found.append(listener)
    return tuple(found)


def _named(listeners: tuple[Listener, ...], name: str) -> Listener | None:
    return next((each for each in listeners if each.name == name.upper()), None)


def _own_voter(values: NodeValues) -> QuorumVoterEntry | None:
    node_id = values.integer("node.id")
    with config_errors():
        voters = parse_quorum_voters(values.words("controller.quorum.voters"))
    return next((voter for voter in voters if voter.node_id == node_id), None)
