"""Nodes, connections, clock and backoff of the admin client, and its settings.

They have Kafka's keys, defaults, limits and error messages.
"""

import asyncio
import ipaddress
import random
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, cast

from kvorum.cli.admin.errors import (
    CONFIG_EXCEPTION,
    ERRORS_PACKAGE,
    NOT_CREATED,
    AdminError,
    CallFailedError,
    Failure,
    class_of,
    failed,
    not_created,
)
from kvorum.metadata.address import Address
from kvorum.metadata.config_definitions import (
    ConfigDefinition,
    ConfigType,
    ConfigValue,
    InvalidConfigError,
    parse_all,
    parse_host_port,
)
from kvorum.metadata.config_definitions.validators import ListOf, OneOf, Range
from kvorum.node.outbound.client_connection import (
    ClientConnection,
    ClientConnectionError,
    SaslAuthenticationError,
    SslAuthenticationError,
)
from kvorum.security.client_security import NO_SECURITY, ClientSecurity
from kvorum.security.client_settings import (
    CLIENT_CONFIGS,
    PROTOCOL,
    ClientSecuritySettings,
    UnservedMechanismError,
)
from kvorum.security.errors import InvalidOAuthSettingsError, InvalidSslSettingsError
from kvorum.security.jaas_config import InvalidJaasConfigError
from kvorum.security.sasl_client import LoginFailedError
from kvorum.security.sasl_login_modules import NoLoginModuleError

SERVERS: Final = "bootstrap.servers"
CONTROLLERS: Final = "bootstrap.controllers"
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
            *CLIENT_CONFIGS.values(),
        )
    }
)
_BACKOFF_BASE = 2
_BACKOFF_JITTER = 0.2
_TIMER_SLACK_MS = 1
"""Java counts whole milliseconds: a deadline has passed only one millisecond after it."""


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
    security: ClientSecurity = NO_SECURITY


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
        security=_security(values),
    )


def _security(values: Mapping[str, ConfigValue]) -> ClientSecurity:
    """Return the security of the connections, logged in as Kafka's client; raises AdminError."""
    try:
        security = ClientSecuritySettings.from_values(values).make()
        _log_in(security)
        return security
    except ImportError as error:
        raise AdminError(
            f"{PROTOCOL}={values[PROTOCOL]} needs the package cryptography: install kvorum with "
            "its extra 'security'"
        ) from error
    except InvalidSslSettingsError as error:
        cause = f"{ERRORS_PACKAGE}.InvalidConfigurationException: {error}"
    except NoLoginModuleError as error:
        cause = str(error)
    except InvalidJaasConfigError as error:
        cause = f"java.lang.IllegalArgumentException: {error}"
    except InvalidOAuthSettingsError as error:
        cause = f"{CONFIG_EXCEPTION}: {error}"
    except LoginFailedError as error:
        cause = f"javax.security.auth.login.LoginException: {error}"
    except UnservedMechanismError as error:
        raise AdminError(str(error)) from error
    raise AdminError(NOT_CREATED, cause=cause)


def _log_in(security: ClientSecurity) -> None:
    """Have what connections log in with, which may block; raises LoginFailedError."""
    if security.login is not None:
        security.login.prepare(time.time, time.sleep)


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


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node of the cluster; a bootstrap address has a negative id."""

    node_id: int
    address: Address


class AdminClock:
    """A clock in milliseconds that starts at the wall-clock time and then runs monotonically."""

    def __init__(self) -> None:
        self._ahead_ms = time.time() * 1000 - time.monotonic() * 1000

    def now_ms(self) -> int:
        """Return the milliseconds since 1970."""
        return int(self._ahead_ms + time.monotonic() * 1000)

    def left_ms(self, deadline_ms: int) -> int:
        """Return the milliseconds until a deadline, 0 if it has passed."""
        return max(0, deadline_ms - self.now_ms())

    async def pause(self, pause_ms: int, *, deadline_ms: int) -> None:
        """Wait, but not beyond a deadline."""
        left_ms = self.left_ms(deadline_ms) + _TIMER_SLACK_MS
        await asyncio.sleep(min(pause_ms, left_ms) / 1000)


class Backoff:
    """Exponential backoff with jitter, as in Kafka's clients."""

    def __init__(self, settings: AdminSettings, chance: random.Random) -> None:
        self._settings = settings
        self._chance = chance

    def pause_ms(self, failures: int) -> int:
        """Return the pause after a failure that `failures` others precede."""
        settings = self._settings
        if settings.retry_backoff_ms == 0:
            return 0
        grown_ms = settings.retry_backoff_ms * _BACKOFF_BASE ** min(failures, 30)
        spread = self._chance.uniform(1 - _BACKOFF_JITTER, 1 + _BACKOFF_JITTER)
        return int(min(grown_ms, settings.retry_backoff_max_ms) * spread)


class Connections:
    """The connections of one client; the first failure to connect to a node gives a warning."""

    def __init__(self, settings: AdminSettings, *, clock: AdminClock, warn: Callable[[str], None]):
        self._settings = settings
        self._clock = clock
        self._warn = warn
        self._open: dict[ClusterNode, ClientConnection] = {}
        self._warned: set[ClusterNode] = set()

    def is_open(self, node: ClusterNode) -> bool:
        """Return whether the connection to a node is open."""
        connection = self._open.get(node)
        return connection is not None and connection.is_open

    async def to(self, node: ClusterNode, *, deadline_ms: int) -> ClientConnection | None:
        """Return a connection to a node, None where the node cannot be reached.

        Raises CallFailedError where one side does not trust the other, or does not let it in.
        """
        if self.is_open(node):
            return self._open[node]
        settings = self._settings
        left_ms = self._clock.left_ms(deadline_ms)
        timeout_ms = min(left_ms, settings.connect_timeout_ms, settings.request_timeout_ms)
        try:
            _log_in(settings.security)
            connection = await ClientConnection.open(
                host=node.address.host,
                port=node.address.port,
                client_id=settings.client_id,
                timeout_ms=timeout_ms,
                security=settings.security,
            )
        except SslAuthenticationError as error:
            raise self._not_let_in(
                node, failed("SslAuthenticationException", "SSL handshake failed")
            ) from error
        except LoginFailedError as error:
            raise self._not_let_in(
                node, failed("SaslAuthenticationException", str(error))
            ) from error
        except SaslAuthenticationError as error:
            failure = Failure(class_name=class_of(error.code), text=str(error))
            raise self._not_let_in(node, CallFailedError(failure)) from error
        except ClientConnectionError:
            if node not in self._warned:
                self._warned.add(node)
                self._warn(
                    f"[AdminClient clientId={settings.client_id}] Connection to node "
                    f"{node.node_id} ({_java_address(node.address)}) could not be established. "
                    "Node may not be available."
                )
            return None
        self._open[node] = connection
        return connection

    def _not_let_in(self, node: ClusterNode, error: CallFailedError) -> CallFailedError:
        """Warn of a failed authentication, which is not tried again, as in Kafka's clients."""
        self._warn(
            f"[AdminClient clientId={self._settings.client_id}] Connection to node {node.node_id} "
            f"({_java_address(node.address)}) failed authentication due to: {error.failure.text}"
        )
        return error

    def in_order(self, nodes: Iterable[ClusterNode], chance: random.Random) -> list[ClusterNode]:
        """Return nodes in the order to try them: connected ones first, otherwise at random."""
        shuffled = list(nodes)
        chance.shuffle(shuffled)
        return sorted(shuffled, key=lambda node: not self.is_open(node))

    async def close(self) -> None:
        """Close every connection."""
        for connection in self._open.values():
            await connection.close()
        self._open.clear()


def _java_address(address: Address) -> str:
    """Return ``name/address:port``, as Java writes it; no name if the host is an address itself."""
    name = "" if _literal(address.host) is not None else address.host
    found = _literal(address.host) or _resolved(address)
    if found is None:
        return f"{address.host}/<unresolved>:{address.port}"
    if isinstance(found, ipaddress.IPv6Address):
        groups = ":".join(f"{int(group, 16):x}" for group in found.exploded.split(":")[:8])
        return f"{name}/[{groups}]:{address.port}"
    return f"{name}/{found}:{address.port}"


def _literal(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _resolved(address: Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Resolve a name; among several addresses, prefer IPv4, as Java does."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    texts = [str(each[4][0]) for each in sorted(found, key=lambda one: one[0] != socket.AF_INET)]
    return _literal(texts[0]) if texts else None
