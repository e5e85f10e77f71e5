"""Kafka's SaslServerAuthenticator: from a client's first frame to its name (KIP-43, KIP-152).

A frame is a request, or a bare token after SaslHandshake in version 0. Frames go in, responses come
out; after an error, or once `user` is known, nothing more goes in.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, TypeVar

from kvorum.security.sasl_server import (
    NewSaslServer,
    SaslAuthenticationError,
    SaslBrokenError,
    SaslError,
    SaslServer,
)
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import WireError
from kvorum.wire.headers import decode_request_header, encode_response_frame
from kvorum.wire.messages.request_header import RequestHeader
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kvorum.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kvorum.wire.primitives import Message

Request = TypeVar("Request", bound=Message)
_FIRST_VERSION_WITH_REQUESTS: Final = 1
"""The version of SaslHandshake after which tokens are in SaslAuthenticate requests."""
_NO_REQUEST: Final = (
    "Invalid request, potential reasons: kafka client configured with the wrong security protocol, "
    "it does not support KIP-43 or it is not a kafka client."
)
_LISTED_LAST: Final = "SCRAM-SHA-256"


class FailedAuthenticationError(Exception):
    """A client that is not let in: it is to wait for its `response`, None without, and the end."""

    def __init__(self, reason: str, response: bytes | None = None) -> None:
        super().__init__(reason)
        self.response = response


class IllegalSaslStateError(Exception):
    """A request of another API instead of a token, to be refused with ILLEGAL_SASL_STATE."""


class _State(Enum):
    """The state of an authentication: what may come next."""

    INITIAL_REQUEST = auto()
    HANDSHAKE_REQUEST = auto()
    AUTHENTICATE = auto()
    AUTHENTICATE_BY_BARE_TOKENS = auto()


class SaslServerAuthenticator:
    """One client's authentication by a mechanism out of those of its listener."""

    def __init__(self, mechanisms: Mapping[str, NewSaslServer]) -> None:
        self._mechanisms = mechanisms
        # As Kafka's hash set has them: these two in the order of the settings, before the third.
        self._listed = sorted(mechanisms, key=lambda name: name == _LISTED_LAST)
        self._state = _State.INITIAL_REQUEST
        self._mechanism = ""
        self._server: SaslServer | None = None

    @property
    def user(self) -> str | None:
        """The name of the authenticated user, None before."""
        return None if self._server is None else self._server.authorization_id

    def receive(self, frame: bytes) -> bytes | None:
        """Return the response, None for a request of ApiVersions, which is answered elsewhere.

        Raises SaslBrokenError, FailedAuthenticationError or IllegalSaslStateError.
        """
        if self._server is None:
            return self._begin(frame)
        if self._state is _State.AUTHENTICATE_BY_BARE_TOKENS:
            return self._take_bare_token(self._server, frame)
        return self._take_request(self._server, frame)

    def has_answered_api_versions(self) -> None:
        """Take note of an answer to ApiVersions without an error: only SaslHandshake may follow."""
        self._state = _State.HANDSHAKE_REQUEST

    def _begin(self, frame: bytes) -> bytes | None:
        """Take a request before the handshake."""
        header, body_start = _read_header(frame)
        if header.request_api_key == ApiKey.API_VERSIONS:
            if self._state is _State.INITIAL_REQUEST:
                return None
            raise SaslBrokenError(
                "Unexpected ApiVersions request received during SASL authentication state "
                f"{self._state.name}"
            )
        if header.request_api_key == ApiKey.SASL_HANDSHAKE:
            return self._shake_hands(header, frame, body_start)
        if self._state is _State.INITIAL_REQUEST:
            raise SaslBrokenError(_NO_REQUEST)
        name = ApiKey(header.request_api_key).name
        raise SaslBrokenError(f"Unexpected Kafka request of type {name} during SASL handshake.")

    def _shake_hands(self, header: RequestHeader, frame: bytes, body_start: int) -> bytes:
        """Answer SaslHandshake, which chooses the mechanism."""
        version = header.request_api_version
        request = _decoded(SaslHandshakeRequest, frame, body_start, version)
        response = SaslHandshakeResponse(mechanisms=self._listed)
        new_server = self._mechanisms.get(request.mechanism)
        if new_server is None:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            raise FailedAuthenticationError(
                f"Unsupported SASL mechanism {request.mechanism}", _encoded(response, header)
            )
        self._mechanism = request.mechanism
        self._server = new_server()
        self._state = (
            _State.AUTHENTICATE
            if version >= _FIRST_VERSION_WITH_REQUESTS
            else _State.AUTHENTICATE_BY_BARE_TOKENS
        )
        return _encoded(response, header)

    def _take_bare_token(self, server: SaslServer, token: bytes) -> bytes:
        """Return the server's token as it is; a client does not hear why its token is refused."""
        try:
            return server.evaluate(token)
        except SaslAuthenticationError as error:
            raise FailedAuthenticationError(str(error)) from error
        except SaslError as error:
            raise SaslBrokenError(str(error)) from error

    def _take_request(self, server: SaslServer, frame: bytes) -> bytes:
        """Answer SaslAuthenticate, the only request after the handshake."""
        header, body_start = _read_header(frame)
        if header.request_api_key != ApiKey.SASL_AUTHENTICATE:
            name = ApiKey(header.request_api_key).name
            raise IllegalSaslStateError(
                f"Unexpected Kafka request of type {name} during SASL authentication."
            )
        version = header.request_api_version
        request = _decoded(SaslAuthenticateRequest, frame, body_start, version)
        try:
            token = server.evaluate(request.auth_bytes)
        except SaslError as error:
            response = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=self._text_for(error)
            )
            raise FailedAuthenticationError(
                str(response.error_message), _encoded(response, header)
            ) from error
        return _encoded(SaslAuthenticateResponse(error_message="", auth_bytes=token), header)

    def _text_for(self, error: SaslError) -> str:
        if isinstance(error, SaslAuthenticationError):
            return str(error)
        return (
            "Authentication failed during authentication due to invalid credentials with SASL "
            f"mechanism {self._mechanism}"
        )


def _read_header(frame: bytes) -> tuple[RequestHeader, int]:
    try:
        return decode_request_header(frame)
    except WireError as error:
        raise SaslBrokenError(_NO_REQUEST) from error


def _decoded(kind: type[Request], frame: bytes, body_start: int, version: int) -> Request:
    """Return the body of a request; what follows it does not count."""
    try:
        body, _ = kind.decode_from(frame, body_start, version)
    except WireError as error:
        raise SaslBrokenError(f"not a request: {error}") from error
    return body


def _encoded(response: Message, header: RequestHeader) -> bytes:
    return encode_response_frame(
        response, version=header.request_api_version, correlation_id=header.correlation_id
    )
