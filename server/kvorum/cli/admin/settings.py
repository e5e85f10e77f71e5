"""Settings of the admin client: Kafka's keys, defaults, limits and error messages."""

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, cast

from kvorum.cli.admin.errors import AdminError, not_created
from kvorum.metadata.address import Address
from kvorum.metadata.config_definitions import (
    ConfigDefinition,
    ConfigType,
    InvalidConfigError,
    parse_all,
    parse_host_port,
)
from kvorum.metadata.config_definitions.validators import ListOf, OneOf, OneOfIgnoringCase, Range

SERVERS: Final = "bootstrap.servers"
CONTROLLERS: Final = "bootstrap.controllers"
_PROTOCOL = "security.protocol"
_REQUEST_TIMEOUT = "request.timeout.ms"
_API_TIMEOUT = "default.api.timeout.ms"
_INT_MAX = 2**31 - 1
_NOT_NEGATIVE = Range(0)
_DEFINITIONS = MappingProxyType(
    {
        definition.name: definition
        for definition in (
            ConfigDefinition(SERVERS, ConfigType.LIST, "", ListOf()),
            ConfigDefinition(CONTROLLERS, ConfigType.LIST, "", ListOf()),
            ConfigDefinition("client.id", ConfigType.STRING, ""),
            ConfigDefinition("retry.backoff.ms", ConfigType.LONG, "100", _NOT_NEGATIVE),
            ConfigDefinition("retry.backoff.max.ms", ConfigType.LONG, "1000", _NOT_NEGATIVE),
            ConfigDefinition(_REQUEST_TIMEOUT, ConfigType.INT, "30000", _NOT_NEGATIVE),
            ConfigDefinition("socket.connection.setup.timeout.ms", ConfigType.LONG, "10000"),
            ConfigDefinition("retries", ConfigType.INT, str(_INT_MAX), Range(0, _INT_MAX)),
            ConfigDefinition(_API_TIMEOUT, ConfigType.INT, "60000", _NOT_NEGATIVE),
            ConfigDefinition(
                "client.dns.lookup",
                ConfigType.STRING,
                "use_all_dns_ips",
                OneOf(("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")),
            ),
            ConfigDefinition(
                _PROTOCOL,
                ConfigType.STRING,
                "PLAINTEXT",
                OneOfIgnoringCase(("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT")),
            ),
        )
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings:
    """The bootstrap addresses and the timeouts of the admin client; times in milliseconds."""

    addresses: tuple[Address, ...]
    asks_controllers: bool
    client_id: str = "adminclient-1"
    request_timeout_ms: int = 30_000
    api_timeout_ms: int = 60_000
    connect_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    retries_max: int = _INT_MAX


def admin_settings(properties: Mapping[str, str], *, warn: Callable[[str], None]) -> AdminSettings:
    """Read the client's settings from `properties`; AdminError has the message of Kafka's tools.

    Host names are resolved at once: those that cannot be resolved are reported through `warn` and
    left out.
    """
    try:
        values = parse_all(_DEFINITIONS, properties)
    except InvalidConfigError as error:
        raise AdminError(str(error)) from error
    servers = cast("tuple[str, ...]", values[SERVERS])
    controllers = cast("tuple[str, ...]", values[CONTROLLERS])
    if not servers and not controllers:
        raise not_created(f"You must set either {SERVERS} or {CONTROLLERS}")
    if servers and controllers:
        raise not_created(f"You cannot set both {SERVERS} and {CONTROLLERS}")
    protocol = str(values[_PROTOCOL]).upper()
    if protocol != "PLAINTEXT":
        raise AdminError(f"{_PROTOCOL}={protocol}: kvorum's commands connect in plain text only")
    request_timeout_ms = cast("int", values[_REQUEST_TIMEOUT])
    return AdminSettings(
        addresses=_addresses(servers or controllers, warn),
        asks_controllers=bool(controllers),
        client_id=str(values["client.id"]) or "adminclient-1",
        request_timeout_ms=request_timeout_ms,
        api_timeout_ms=_api_timeout_ms(
            cast("int", values[_API_TIMEOUT]),
            request_timeout_ms=request_timeout_ms,
            is_set=_API_TIMEOUT in properties,
        ),
        connect_timeout_ms=cast("int", values["socket.connection.setup.timeout.ms"]),
        retry_backoff_ms=cast("int", values["retry.backoff.ms"]),
        retry_backoff_max_ms=cast("int", values["retry.backoff.max.ms"]),
        retries_max=cast("int", values["retries"]),
    )


def _api_timeout_ms(api_timeout_ms: int, *, request_timeout_ms: int, is_set: bool) -> int:
    if api_timeout_ms >= request_timeout_ms:
        return api_timeout_ms
    if is_set:
        raise not_created(
            f"The specified value of {_API_TIMEOUT} must be no smaller than the value of "
            f"{_REQUEST_TIMEOUT}."
        )
    return request_timeout_ms


def _addresses(entries: tuple[str, ...], warn: Callable[[str], None]) -> tuple[Address, ...]:
    # The messages name the key of the brokers for controllers too, as Kafka's messages do.
    found: list[Address] = []
    for entry in entries:
        try:
            address = parse_host_port(entry)
        except InvalidConfigError:
            raise not_created(f"Invalid port in {SERVERS}: {entry}") from None
        if address is None:
            raise not_created(f"Invalid url in {SERVERS}: {entry}")
        address = Address(address.host or "localhost", address.port)
        if _is_resolvable(address.host):
            found.append(address)
        else:
            warn(
                f"Couldn't resolve server {entry} from {SERVERS} as DNS resolution failed for "
                f"{address.host}"
            )
    if not found:
        raise not_created(f"No resolvable bootstrap urls given in {SERVERS}")
    return tuple(dict.fromkeys(found))


def _is_resolvable(host: str) -> bool:
    try:
        socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return True
