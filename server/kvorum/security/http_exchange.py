"""One request by HTTP or HTTPS, which blocks its thread; answers are bounded, redirects refused."""

import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from kvorum.security.allowed_url import HTTPS

BODY_BYTES_MAX: Final = 1024 * 1024
"""More than a token or a key set has; a longer answer is refused."""
WAIT_MS: Final = 10_000
"""The time for a connection, and for each piece of an answer, where no other is set."""


class HttpFailedError(Exception):
    """A request without an answer; the text is without the request, which may be secret."""


class HttpAnswer(NamedTuple):
    """The status of an answer, and its body."""

    status: int
    body: bytes


class HttpPlace(NamedTuple):
    """The URL of a server, which has been checked, and the patience with it, in milliseconds.

    `tls` is for HTTPS, with None for the authorities that the machine trusts.
    """

    url: str
    connect_ms_max: int = WAIT_MS
    read_ms_max: int = WAIT_MS
    tls: ssl.SSLContext | None = None

    def ask(self, method: str, headers: Mapping[str, str], body: bytes | None = None) -> HttpAnswer:
        """Send a request, and return the answer; raises HttpFailedError."""
        connection = self._connection()
        try:
            connection.connect()
            connection.sock.settimeout(self.read_ms_max / 1000)
            connection.request(method, self._target(), body, dict(headers))
            response = connection.getresponse()
            answered = response.read(BODY_BYTES_MAX + 1)
        except (OSError, HTTPException, ValueError) as error:
            raise HttpFailedError(str(error) or type(error).__name__) from error
        finally:
            connection.close()
        if len(answered) > BODY_BYTES_MAX:
            raise HttpFailedError(f"an answer of more than {BODY_BYTES_MAX} bytes")
        return HttpAnswer(response.status, answered)

    def _connection(self) -> HTTPConnection:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        timeout_s = self.connect_ms_max / 1000
        if parts.scheme == HTTPS:
            return HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s, context=self.tls)
        return HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)

    def _target(self) -> str:
        parts = urlsplit(self.url)
        query = f"?{parts.query}" if parts.query else ""
        return f"{parts.path or '/'}{query}"
