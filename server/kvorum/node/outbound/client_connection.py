"""A client's connection to a Kafka node: TLS and SASL, ApiVersions, then pipelined requests.

::

    ClientConnectionError            the connection is closed, except after NoCommonVersionError
    ├── ConnectFailedError           no connection to the address in time
    │   ├── NobodyListensError       the address refuses connections
    │   ├── SslAuthenticationError   one side does not trust the other, or they do not agree on TLS
    │   └── SaslAuthenticationError  the peer does not let this client in, or is not believed
    ├── ConnectionLostError          the connection broke, or the peer sent an invalid response
    ├── RequestTimedOutError         no response in time; the connection is closed
    └── NoCommonVersionError         no version of the API in common; the connection stays open
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import SystemRandom
from types import MappingProxyType
from typing import NamedTuple, Self, TypeAlias, TypeVar, cast

from kvorum.metadata.address import Address
from kvorum.node.coroutines import GiveUp, Take, Task, Wait
from kvorum.node.sockets import ConnectionEnd
from kvorum.node.tasks import run
from kvorum.node.version import VERSION
from kvorum.security.client_login import ClientLogin
from kvorum.security.client_security import NO_SECURITY, ClientSecurity
from kvorum.security.sasl_client_authenticator import SaslClientAuthenticator, SaslFailedError
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import WireError
from kvorum.wire.headers import (
    FrameSizeError,
    decode_response_frame,
    encode_request_frame,
    take_frame,
    with_size,
)
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.primitives import Message

API_VERSIONS_VERSION = 4
"""The version that clients of 4.3.1 begin with; version 5 adds fields that are not needed here."""
RESPONSE_BYTES_MAX = 100 * 1024 * 1024
"""The default of socket.request.max.bytes: nothing in this protocol needs more."""
CLIENT_SOFTWARE_NAME = "kvorum"
CLIENT_SOFTWARE_VERSION = VERSION
_CORRELATION_ID = struct.Struct(">i")
_CORRELATION_ID_MAX = 2**31 - 1
_CORRELATION_ID_OFFSET = 4
"""The place of the correlation id in a request: after the API's key and version."""
_SHARE_OF_SESSION = 0.85
_SHARE_BY_CHANCE = 0.10
"""The shares of a session after which a client authenticates again, as Kafka's: at least, and more
by chance, so that not all do it at once."""
_CHANCE = SystemRandom()
_NO_LIMIT_MS = 3_600_000
"""The time for a response while a connection is opened: the caller's own limit is in force."""

Response = TypeVar("Response", bound=Message)
_Address: TypeAlias = tuple[
    socket.AddressFamily,
    socket.SocketKind,
    int,
    str,
    tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes],
]
"""An item of the result of `socket.getaddrinfo`."""


class ClientConnectionError(Exception):
    """The base of the errors of a client's connection."""


class ConnectFailedError(ClientConnectionError):
    """No connection to the address could be opened in time."""


class NobodyListensError(ConnectFailedError):
    """The machine refused the connection: no process listens at the address."""


class SslAuthenticationError(ConnectFailedError):
    """One side does not trust the other's certificate, or they have no version or suite in common.

    In TLS 1.3 the connection of a client is open before the server has seen its certificate.
    """


class SaslAuthenticationError(ConnectFailedError):
    """The peer does not let this client in; the text and the `code` are those of Kafka's client."""

    def __init__(self, failure: SaslFailedError) -> None:
        super().__init__(str(failure))
        self.code = failure.code


class ConnectionLostError(ClientConnectionError):
    """The connection was closed by the peer, by this side, or after invalid bytes."""


class RequestTimedOutError(ClientConnectionError):
    """A response did not come in time; the connection was closed."""


class NoCommonVersionError(ClientConnectionError):
    """Client and peer have no version of an API in common; other requests can still be sent."""


class _Waiting(NamedTuple):
    """A request that has no response yet: what takes that, and the timer of its time limit."""

    take: Take[bytes]
    timer: asyncio.TimerHandle


class ClientConnection(asyncio.Protocol):
    """One connection to one node, opened with `ClientConnection.open`.

    Requests may be sent while others wait for their responses. After the first failure, except
    NoCommonVersionError, the connection stays closed: the caller opens another one.
    """

    def __init__(self, *, client_id: str) -> None:
        self.client_id = client_id
        self.peer_versions: Mapping[int, tuple[int, int]] = MappingProxyType({})
        """The lowest and highest version of each API key that the peer offers."""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._next_correlation_id = 0
        self._waiting: dict[int, _Waiting] = {}
        self._failure: ClientConnectionError | None = None
        self._is_abandoned = False
        self._authenticator: SaslClientAuthenticator | None = None
        self._session_due_s: float | None = None
        self._is_authenticating_again = False
        self._held: list[bytes] = []
        self._end = ConnectionEnd()
        self._lost = asyncio.Event()

    @classmethod
    async def open(
        cls,
        *,
        host: str,
        port: int,
        client_id: str,
        timeout_ms: int,
        security: ClientSecurity = NO_SECURITY,
    ) -> Self:
        """Connect, authenticate and request the peer's versions, all within `timeout_ms`."""
        tls = security.tls
        address = Address(host, port)
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_ms / 1000
        try:
            async with asyncio.timeout_at(deadline_s):
                connecting = await _connected_socket(host, port, deadline_s=deadline_s)
                _, connection = await loop.create_connection(
                    lambda: cls(client_id=client_id),
                    sock=connecting,
                    ssl=tls,
                    server_hostname=None if tls is None else host,
                )
                try:
                    if security.login is not None:
                        await run(connection._authenticate(security.login))
                    await run(connection._agree_on_versions())
                except BaseException:
                    connection.abort()
                    raise
        except TimeoutError as error:
            message = f"no connection to {address} within {timeout_ms} ms"
            raise ConnectFailedError(message) from error
        except ssl.SSLError as error:
            message = f"SSL handshake with {address} failed: {error.reason or error}"
            raise SslAuthenticationError(message) from error
        except SaslFailedError as error:
            raise SaslAuthenticationError(error) from error
        except ConnectionRefusedError as error:
            raise NobodyListensError(f"no connection to {address}: {error}") from error
        except (OSError, UnicodeError) as error:
            raise ConnectFailedError(f"no connection to {address}: {error}") from error
        return connection

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._failure is None

    def version_for(self, message: type[Message]) -> int:
        """Return the highest common version of a request; raises NoCommonVersionError."""
        key = -1 if message.API_KEY is None else message.API_KEY
        offered = self.peer_versions.get(key)
        if offered is None:
            raise NoCommonVersionError(f"the peer does not offer {message.NAME}")
        version = min(offered[1], message.MAX_VERSION)
        if version < max(offered[0], message.MIN_VERSION):
            raise NoCommonVersionError(
                f"the peer offers {message.NAME} {offered[0]} to {offered[1]}, "
                f"not {message.MIN_VERSION} to {message.MAX_VERSION}"
            )
        return version

    async def request(
        self, message: Message, kind: type[Response], *, timeout_ms: int, version: int | None = None
    ) -> Response:
        """Return what `send` returns, to a coroutine of asyncio."""
        return await run(self.send(message, kind, timeout_ms=timeout_ms, version=version))

    async def send(
        self, message: Message, kind: type[Response], *, timeout_ms: int, version: int | None = None
    ) -> Response:
        """Send a request in the highest common version, or `version`; return its response.

        A coroutine on the runtime. `kind` is the class of the response. Raises the errors of this
        module; a message that cannot be written in the common version raises `EncodeError` and
        leaves the connection open.
        """
        chosen = self.version_for(type(message)) if version is None else version
        frame = await self._exchange(message, version=chosen, timeout_ms=timeout_ms)
        try:
            return decode_response_frame(frame, response_class=kind, version=chosen)[1]
        except WireError as error:
            raise self._fail(ConnectionLostError(f"not a response: {error}")) from error

    async def close(self) -> None:
        """Close the connection; requests still waiting fail with ConnectionLostError."""
        self.abort()
        await self._lost.wait()

    def abort(self) -> None:
        """Close the connection without waiting until it is closed."""
        self._fail(ConnectionLostError("the connection was closed"))

    def abandon(self) -> None:
        """Close the connection as soon as no request waits for its response."""
        self._is_abandoned = True
        self._close_if_abandoned()

    def _close_if_abandoned(self) -> None:
        if self._is_abandoned and not self._waiting:
            self.abort()

    def _exchange(self, message: Message, *, version: int, timeout_ms: int) -> Wait[bytes]:
        """Return the wait for the frame that answers a request; raises the failure there is."""
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & _CORRELATION_ID_MAX
        frame = encode_request_frame(
            message, version=version, correlation_id=correlation_id, client_id=self.client_id
        )
        return self._exchange_frame(
            frame, self._write_in_session, name=message.NAME, timeout_ms=timeout_ms
        )

    def _exchange_frame(
        self, frame: bytes, write: Callable[[bytes], None], *, name: str, timeout_ms: int
    ) -> Wait[bytes]:
        """Return the wait for the answer to a frame; raises the failure there is."""
        if self._failure is not None:
            raise self._failure
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame, _CORRELATION_ID_OFFSET)

        def begin(take: Take[bytes]) -> GiveUp:
            late = partial(self._time_out, name, timeout_ms)
            timer = self._loop.call_later(timeout_ms / 1000, late)
            self._waiting[correlation_id] = _Waiting(take, timer)
            write(frame)
            return partial(self._forget, correlation_id)

        return Wait(begin)

    def _time_out(self, name: str, timeout_ms: int) -> None:
        self._fail(RequestTimedOutError(f"no response to {name} within {timeout_ms} ms"))

    def _forget(self, correlation_id: int) -> None:
        """Wait no longer for a response, which may come all the same."""
        waiting = self._waiting.pop(correlation_id, None)
        if waiting is not None:
            waiting.timer.cancel()
            self._close_if_abandoned()

    def _write(self, frame: bytes) -> None:
        assert self._transport is not None
        self._transport.write(with_size(frame))

    def _write_in_session(self, frame: bytes) -> None:
        """Write a request, or hold it until the client has authenticated again.

        As Kafka's client, this one does so before its first request after most of the session.
        """
        due_s = self._session_due_s
        if due_s is not None and self._loop.time() >= due_s:
            self._session_due_s = None
            self._is_authenticating_again = True
            assert self._authenticator is not None
            again = self._exchange_tokens(self._authenticator.begin_again())
            Task(again, self._take_new_session)
        if self._is_authenticating_again:
            self._held.append(frame)
        else:
            self._write(frame)

    async def _authenticate(self, login: ClientLogin) -> None:
        """Log in by SASL; raises SaslFailedError."""
        self._authenticator = SaslClientAuthenticator(login, self.client_id)
        await self._exchange_tokens(self._authenticator.begin())

    async def _exchange_tokens(self, first: bytes) -> None:
        """Send the first request of an authentication, and those that follow upon its answers."""
        authenticator = self._authenticator
        assert authenticator is not None
        request: bytes | None = first
        while request is not None:
            response = await self._exchange_frame(
                request, self._write, name="SASL", timeout_ms=_NO_LIMIT_MS
            )
            request = authenticator.receive(response)
        lifetime_s = authenticator.session_lifetime_ms / 1000
        if lifetime_s > 0:
            share = _SHARE_OF_SESSION + _SHARE_BY_CHANCE * _CHANCE.random()
            self._session_due_s = self._loop.time() + lifetime_s * share

    def _take_new_session(self, result: Exception | None) -> None:
        """Send what was held, or close where the peer does not let this client in any more."""
        self._is_authenticating_again = False
        if isinstance(result, SaslFailedError):
            self._fail(SaslAuthenticationError(result))
        elif result is not None:
            self._fail(ConnectionLostError(f"the client cannot authenticate again: {result}"))
        else:
            for frame in self._held:
                self._write(frame)
        self._held.clear()

    async def _agree_on_versions(self) -> None:
        version = API_VERSIONS_VERSION
        response = await self._ask_versions(version)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            offered = {one.api_key: one for one in response.api_keys}
            peer = offered.get(ApiKey.API_VERSIONS)
            version = min(version, peer.max_version) if peer is not None else 0
            response = await self._ask_versions(version)
        if response.error_code != ErrorCode.NONE:
            problem = f"the peer answered ApiVersions with error {response.error_code}"
            raise ConnectFailedError(problem)
        self.peer_versions = MappingProxyType(
            {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}
        )

    async def _ask_versions(self, version: int) -> ApiVersionsResponse:
        """Send ApiVersions in `version`; a peer without it answers in version 0, with an error."""
        request = ApiVersionsRequest(
            client_software_name=CLIENT_SOFTWARE_NAME,
            client_software_version=CLIENT_SOFTWARE_VERSION,
        )
        frame = await self._exchange(request, version=version, timeout_ms=_NO_LIMIT_MS)
        try:
            read_version = version
            if _error_code_of(frame) == ErrorCode.UNSUPPORTED_VERSION:
                read_version = 0
            return decode_response_frame(
                frame, response_class=ApiVersionsResponse, version=read_version
            )[1]
        except WireError as error:
            raise ConnectFailedError(
                f"the peer does not speak Kafka's protocol: {error}"
            ) from error

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport, as asyncio gives it."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Pass each whole response to the caller that waits for it."""
        self._received += data
        try:
            while self._failure is None and (frame := self._take_frame()) is not None:
                self._respond(frame)
        except FrameSizeError as error:
            self._fail(ConnectionLostError(f"the connection broke: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Have every request fail that waits for its response."""
        if exc is None:
            self._fail(ConnectionLostError("the peer closed the connection"))
        elif isinstance(exc, ssl.SSLError):
            self._fail(SslAuthenticationError(f"SSL handshake failed: {exc.reason or exc}"))
        else:
            self._fail(ConnectionLostError(f"the connection broke: {exc}"))
        self._received.clear()
        self._lost.set()

    def _take_frame(self) -> bytes | None:
        """Return the next whole frame that was received, None while it is incomplete."""
        return take_frame(
            self._received, bytes_min=_CORRELATION_ID.size, bytes_max=RESPONSE_BYTES_MAX
        )

    def _respond(self, frame: bytes) -> None:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        waiting = self._waiting.pop(correlation_id, None)
        if waiting is not None:
            waiting.timer.cancel()
            waiting.take(frame)
            self._close_if_abandoned()

    def _fail(self, error: ClientConnectionError) -> ClientConnectionError:
        """Close because of `error` unless closed already; every waiting caller gets the error."""
        if self._failure is None:
            self._failure = error
            if self._transport is not None:
                self._end.shut_down(self._transport)
                self._transport.close()
            waiting, self._waiting = self._waiting, {}
            for one in waiting.values():
                one.timer.cancel()
                self._loop.call_soon(one.take, error)
        return error


def _error_code_of(frame: bytes) -> int:
    """Return the error code of an ApiVersions response, its first field in every version."""
    if len(frame) < _CORRELATION_ID.size + 2:
        return ErrorCode.NONE
    return int.from_bytes(frame[4:6], "big", signed=True)


async def _connected_socket(host: str, port: int, *, deadline_s: float) -> socket.socket:
    """Connect to the first reachable address of a host.

    An address that does not answer has its share of the time up to `deadline_s`, of the loop's
    clock, so that there is some for those after it. Raises OSError, and ConnectionRefusedError only
    if every address refuses: asyncio's own function does not distinguish that from other failures
    of a host with several addresses.
    """
    loop = asyncio.get_running_loop()
    problems: list[OSError] = []
    addresses = await _addresses_of(host, port)
    for index, (family, kind, protocol, _, address) in enumerate(addresses):
        share_s = (deadline_s - loop.time()) / (len(addresses) - index)
        connecting = socket.socket(family, kind, protocol)
        try:
            connecting.setblocking(False)
            async with asyncio.timeout(share_s):
                await loop.sock_connect(connecting, address)
        except OSError as error:
            connecting.close()
            problems.append(error)
        except BaseException:
            connecting.close()
            raise
        else:
            return connecting
    others = [error for error in problems if not isinstance(error, ConnectionRefusedError)]
    raise (others or problems)[0]


async def _addresses_of(host: str, port: int) -> Sequence[_Address]:
    """Look a host up; a numeric address needs no thread for that. Raises OSError."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        loop = asyncio.get_running_loop()
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
