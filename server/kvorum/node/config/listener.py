"""One listener, and the parser of a list of listeners."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from ipaddress import ip_address

from kvorum.node.config.errors import ConfigError

_ENDPOINT = re.compile(r"(?P<name>.*)://\[?(?P<host>[0-9a-zA-Z\-%._:]*)\]?:(?P<port>-?[0-9]+)\Z")
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_INT_MAX = 2**31 - 1


class SecurityProtocol(Enum):
    """The security protocol of a listener's connections."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def uses_sasl(self) -> bool:
        """Whether clients have to authenticate by SASL."""
        return self in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}


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
        host = self.host or ""
        return f"{self.name}://{f'[{host}]' if ':' in host else host}:{self.port}"


def parse_protocol(text: str, key: str) -> SecurityProtocol:
    """Read the name of a security protocol; `key` is for the error message."""
    try:
        return SecurityProtocol[text.upper()]
    except KeyError:
        raise ConfigError(f"Invalid security protocol `{text}` defined in {key}") from None


def parse_map(key: str, text: str) -> dict[str, str]:
    """Read ``name:value`` pairs, comma separated; the last colon of a pair divides it."""
    pairs: dict[str, str] = {}
    for pair in _COMMA.split(text) if text else ():
        name, colon, value = pair.rpartition(":")
        if not colon:
            raise ConfigError(
                f"Error parsing configuration property '{key}': begin 0, end -1, length {len(pair)}"
            )
        pairs[name.strip()] = value.strip()
    return pairs


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
