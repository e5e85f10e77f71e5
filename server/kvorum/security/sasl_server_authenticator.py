"""Kafka's SaslServerAuthenticator: from a client's first frame to its name (KIP-43, KIP-152).

A frame is a request, or a bare token after SaslHandshake in version 0. Frames go in, responses come
out; after an error, or once the client `is_authenticated`, nothing more goes in. A client
authenticates again with a new authenticator, which knows the authentication before (KIP-368).
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from kvorum.security.sasl_server import (
    AuthenticatedUser,
    SaslAuthenticationError,
    SaslBrokenError,
    SaslError,
    SaslMechanism,
    SaslServer,
)
from kvorum.security.session_lifetime import session_lifetime_ms
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
_LISTED_LAST: Final[Mapping[str, int]] = MappingProxyType({"SCRAM-SHA-256": 1, "OAUTHBEARER": 2})
"""The mechanisms that Kafka's hash set has after the others, which are in the settings' order."""
_FIRST_VERSION_WITH_LIFETIME: Final = 1
"""The version of SaslAuthenticate in which a client hears how long its session lasts."""


class Authentication(NamedTuple):
    """A complete authentication.

    The session lasts `lifetime_ms`, and has no end for None. `knows_lifetime` holds for a client
    that has heard how long.
    """

    user: AuthenticatedUser
    mechanism: str
    lifetime_ms: int | None
    knows_lifetime: bool


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
    OTHER_MECHANISM = auto()


class SaslServerAuthenticator:
    """One authentication of a client by a mechanism out of those of its listener.

    `wall_ms` returns the milliseconds since 1970. A client that authenticates again has to be the
    user of the authentication `before`, by the same mechanism.
    """

    def __init__(
        self,
        mechanisms: Mapping[str, SaslMechanism],
        wall_ms: Callable[[], int],
        before: Authentication | None = None,
    ) -> None:
        self._mechanisms = mechanisms
        self._wall_ms = wall_ms
        self._before = before
        self.authentication: Authentication | None = None
        self._listed = sorted(mechanisms, key=lambda name: _LISTED_LAST.get(name, 0))
        self._state = _State.INITIAL_REQUEST if before is None else _State.HANDSHAKE_REQUEST
        self._mechanism = ""
        self._server: SaslServer | None = None

    @property
    def is_authenticated(self) -> bool:
        """Whether the user is known."""
        return self.authentication is not None

    @property
    def is_repeated(self) -> bool:
        """Whether the client was authenticated before."""
        return self._before is not None

    def receive(self, frame: bytes) -> bytes | None:
        """Return the response, None for a request of ApiVersions, which is answered elsewhere.

        Raises SaslBrokenError, FailedAuthenticationError or IllegalSaslStateError.
        """
        if self._server is None:
            return self._begin(frame)
        if self._state is _State.OTHER_MECHANISM:
            raise FailedAuthenticationError(self._other_mechanism())
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
        mechanism = self._mechanisms.get(request.mechanism)
        if mechanism is None:
            raise self._unsupported(request.mechanism, response, header)
        self._mechanism = request.mechanism
        self._server = mechanism.begin()
        self._state = self._state_after_handshake(version)
        return _encoded(response, header)

    def _state_after_handshake(self, version: int) -> _State:
        # As in Kafka, a client hears only with its next frame that it may not change the mechanism.
        if self._before is not None and self._before.mechanism != self._mechanism:
            return _State.OTHER_MECHANISM
        if version < _FIRST_VERSION_WITH_REQUESTS:
            return _State.AUTHENTICATE_BY_BARE_TOKENS
        return _State.AUTHENTICATE

    def _unsupported(
        self, mechanism: str, response: SaslHandshakeResponse, header: RequestHeader
    ) -> FailedAuthenticationError | SaslBrokenError:
        """Return the refusal of a mechanism; as in Kafka, a client that was let in hears none."""
        reason = f"Unsupported SASL mechanism {mechanism}"
        if self.is_repeated:
            return SaslBrokenError(reason)
        response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        return FailedAuthenticationError(reason, _encoded(response, header))

    def _other_mechanism(self) -> str:
        assert self._before is not None
        return (
            f"SASL mechanism '{self._mechanism}' requested by client is not supported for "
            f"re-authentication of mechanism '{self._before.mechanism}'"
        )

    def _evaluate(self, server: SaslServer, token: bytes, *, knows_lifetime: bool) -> bytes:
        """Return the mechanism's answer; take note of the user that it has authenticated."""
        answer = server.evaluate(token)
        user = server.user
        if user is not None:
            self._refuse_other_user(user)
            lifetime_ms = session_lifetime_ms(
                session_ms_max=self._mechanisms[self._mechanism].session_ms_max,
                expires_at_ms=user.expires_at_ms,
                now_ms=self._wall_ms(),
            )
            self.authentication = Authentication(user, self._mechanism, lifetime_ms, knows_lifetime)
        return answer

    def _refuse_other_user(self, user: AuthenticatedUser) -> None:
        """Raise SaslAuthenticationError where the client was authenticated as another user."""
        if self._before is not None and self._before.user.name != user.name:
            raise SaslAuthenticationError(
                "Cannot change principals during re-authentication from "
                f"User.{self._before.user.name}: User.{user.name}"
            )

    def _take_bare_token(self, server: SaslServer, token: bytes) -> bytes:
        """Return the server's token as it is; a client does not hear why its token is refused."""
        try:
            return self._evaluate(server, token, knows_lifetime=False)
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
        knows_lifetime = version >= _FIRST_VERSION_WITH_LIFETIME
        try:
            token = self._evaluate(server, request.auth_bytes, knows_lifetime=knows_lifetime)
        except SaslError as error:
            response = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=self._text_for(error)
            )
            raise FailedAuthenticationError(
                str(response.error_message), _encoded(response, header)
            ) from error
        done = self.authentication
        lifetime_ms = 0 if done is None else done.lifetime_ms or 0
        response = SaslAuthenticateResponse(
            error_message="", auth_bytes=token, session_lifetime_ms=lifetime_ms
        )
        return _encoded(response, header)

    def _text_for(self, error: SaslError) -> str:
        if isinstance(error, SaslAuthenticationError):
            return str(error)
        attempt = "re-authentication" if self.is_repeated else "authentication"
        return (
            f"Authentication failed during {attempt} due to invalid credentials with SASL "
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
