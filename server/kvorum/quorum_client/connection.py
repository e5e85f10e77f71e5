"""One connection to a controller: requests and responses, one after the other, and versions.

Where TLS or SASL is asked for, that comes first: TLS, then SASL, then ApiVersions.
"""

import socket
import ssl
import struct
import time
from typing import Final, TypeVar

from kvorum.metadata.address import Address
from kvorum.quorum_client.errors import ClientOptionError, QuorumError
from kvorum.security.client_login import ClientLogin
from kvorum.security.client_security import NO_SECURITY, ClientSecurity
from kvorum.security.sasl_client import LoginFailedError
from kvorum.security.sasl_client_authenticator import SaslClientAuthenticator, SaslFailedError
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import WireError
from kvorum.wire.headers import decode_response_frame, encode_request_frame, with_size
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.primitives import Message

PORT_MAX = 65535

CLIENT: Final = "kvorum-spark"
"""The client id of every request."""
API_VERSIONS_VERSION: Final = 3
"""The ApiVersions that is asked for: the first that is flexible, which every KRaft node has."""
FRAME_BYTES_MAX: Final = 512 * 1024 * 1024
"""The largest response that is read: far more than any batch; a larger one is refused."""
_SIZE: Final = struct.Struct(">i")
"""The size of a frame, before it."""
Response = TypeVar("Response", bound=Message)


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Return the addresses of a list such as ``a:9093,[::1]:9093``.

    An address that is listed twice is returned once. Raises `ClientOptionError` for another text.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ClientOptionError(
            "option 'controllers' is empty: name controllers as host:port,host:port"
        )
    return tuple(dict.fromkeys(_parse(part) for part in parts))


def _parse(text: str) -> Address:
    host, _, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if is_bracketed:
        host = host[1:-1]
    if not host or (":" in host and not is_bracketed):
        raise ClientOptionError(f"option 'controllers' has {text!r}: an address is host:port")
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= PORT_MAX):
        raise ClientOptionError(
            f"option 'controllers' has {text!r}: its port is not 1 to {PORT_MAX}"
        )
    return Address(host, int(port))


class ConnectionFailedError(Exception):
    """A connection cannot be made, broke, timed out, or carries bytes that are no response."""


class Connection:
    """A connection over which one request at a time is answered.

    `timeout_s` bounds the wait for the connection, and for each piece of a response. After a
    `ConnectionFailedError` the connection is closed for good.
    """

    def __init__(
        self, address: Address, *, timeout_s: float, security: ClientSecurity = NO_SECURITY
    ) -> None:
        """Connect; raises `ConnectionFailedError`, or `QuorumError` where a retry is in vain."""
        self.address = address
        self._protocol = security.protocol.value
        self._correlation_id = 0
        self._has_answered = False
        self._socket = _connected(address, security.tls, timeout_s)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if security.login is not None:
                self._authenticate(security.login)
            self._versions = self._api_versions()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def ask(self, request: Message, kind: type[Response], *, lowest_version: int = 0) -> Response:
        """Send a request in the highest version that both sides have; return its response.

        Raises `ConnectionFailedError`, also where both have no version from `lowest_version` on.
        """
        if request.API_KEY is None:
            raise TypeError(f"{request.NAME} is no request")
        key = ApiKey(request.API_KEY)
        low, high = self._versions.get(key, (0, -1))
        version = min(high, API_SPECS[key].max_stable_version)
        if version < max(low, lowest_version, API_SPECS[key].min_version):
            self.close()
            raise ConnectionFailedError(f"{key.name} is not served in a version known here")
        answer = self._exchange(request, kind, version)
        self._has_answered = True
        return answer

    def _api_versions(self) -> dict[int, tuple[int, int]]:
        request = ApiVersionsRequest(CLIENT, "1")
        answer = self._exchange(request, ApiVersionsResponse, API_VERSIONS_VERSION)
        if answer.error_code != ErrorCode.NONE:
            raise ConnectionFailedError(f"ApiVersions is answered with error {answer.error_code}")
        return {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}

    def _authenticate(self, login: ClientLogin) -> None:
        try:
            login.prepare(time.time, time.sleep)
        except LoginFailedError as error:
            raise QuorumError(f"SASL {login.mechanism}: {error}") from None
        authenticator = SaslClientAuthenticator(login, CLIENT)
        request: bytes | None = authenticator.begin()
        try:
            while request is not None:
                request = authenticator.receive(self._answer_to(request))
        except SaslFailedError as error:
            raise QuorumError(f"{self.address}: SASL {login.mechanism}: {error}") from None

    def _exchange(self, request: Message, kind: type[Response], version: int) -> Response:
        self._correlation_id += 1
        frame = encode_request_frame(
            request, version=version, correlation_id=self._correlation_id, client_id=CLIENT
        )
        try:
            header, answer = decode_response_frame(
                self._answer_to(frame), response_class=kind, version=version
            )
            if header.correlation_id != self._correlation_id:
                raise ConnectionFailedError("a response to another request")
        except WireError as error:
            self.close()
            raise ConnectionFailedError(_reason(error)) from None
        except ConnectionFailedError:
            self.close()
            raise
        return answer

    def _answer_to(self, frame: bytes) -> bytes:
        """Send a frame, and return the one that comes next; raises ConnectionFailedError."""
        try:
            self._socket.sendall(with_size(frame))
            (size,) = _SIZE.unpack(self._read(_SIZE.size))
            if not 0 <= size <= FRAME_BYTES_MAX:
                raise ConnectionFailedError(f"a response of {size} bytes")
            return self._read(size)
        except OSError as error:
            raise ConnectionFailedError(_reason(error)) from None

    def _read(self, size: int) -> bytes:
        received = bytearray(size)
        view = memoryview(received)
        position = 0
        while position < size:
            count = self._socket.recv_into(view[position:])
            if not count:
                raise ConnectionFailedError(self._closed())
            position += count
        return bytes(received)

    def _closed(self) -> str:
        if self._has_answered:
            return "the controller closed the connection"
        # Kafka closes so where a listener wants TLS; where it wants SASL, after ApiVersions.
        return (
            "the controller closed the connection without an answer, as listeners do that are not "
            f"{self._protocol}: see option 'kafka.security.protocol'"
        )


def _connected(address: Address, context: ssl.SSLContext | None, timeout_s: float) -> socket.socket:
    try:
        made = socket.create_connection(address, timeout=timeout_s)
        if context is None:
            return made
        try:
            return context.wrap_socket(made, server_hostname=address.host)
        except BaseException:
            made.close()
            raise
    except OSError as error:
        raise ConnectionFailedError(_reason(error)) from None


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    strerror: str | None = getattr(error, "strerror", None)
    return strerror or str(error) or type(error).__name__
