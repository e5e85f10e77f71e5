"""Kafka's SaslClientAuthenticator: from a connection's first frame to a client that is let in.

Responses go in, requests come out: ApiVersions in version 0, SaslHandshake, and SaslAuthenticate
for each token (KIP-43, KIP-152). After an error nothing more goes in.
"""

from collections.abc import Mapping
from typing import Final, TypeVar

from kvorum.metadata.known_error_code import known_error_code
from kvorum.security.client_login import ClientLogin
from kvorum.security.sasl_client import SaslServerError
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import WireError
from kvorum.wire.headers import decode_response_frame, encode_request_frame
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kvorum.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kvorum.wire.primitives import Message

FIRST_CORRELATION_ID: Final = 2_147_483_640
"""The first of eight that Kafka keeps for these requests, which no more than five are."""
_FIRST_VERSION_WITH_REQUESTS: Final = 1
"""The version of SaslHandshake after which tokens are in SaslAuthenticate requests."""
_EXCEPTIONS: Final = "java.util.concurrent.CompletionException: javax.security.sasl.SaslException"
"""The exceptions of Kafka's client for a server that it does not believe."""
Response = TypeVar("Response", bound=Message)


class SaslFailedError(Exception):
    """A client that is not let in; `code` stands for the exception of Kafka's clients."""

    def __init__(self, code: ErrorCode, text: str | None) -> None:
        super().__init__(text)
        self.code = code


class SaslClientAuthenticator:
    """One client's authentication at a server."""

    def __init__(self, login: ClientLogin, client_id: str) -> None:
        self._login = login
        self._mechanism = login.mechanism
        self._client = login.begin()
        self._client_id = client_id
        self._versions: Mapping[int, int] = {}
        self._correlation_id = FIRST_CORRELATION_ID - 1
        self._version = 0
        self._sent: type[Message] = ApiVersionsRequest
        self.session_lifetime_ms = 0
        """The time after which the server takes no more requests, 0 for none."""

    def begin(self) -> bytes:
        """Return the first request."""
        return self._request(ApiVersionsRequest(), 0)

    def begin_again(self) -> bytes:
        """Return the first request of another authentication of a client that was let in (KIP-368).

        The versions are those of the first one.
        """
        self._client = self._login.begin()
        self._correlation_id = FIRST_CORRELATION_ID - 1
        self.session_lifetime_ms = 0
        return self._handshake()

    def receive(self, frame: bytes) -> bytes | None:
        """Return the request after a response, None once the client is let in.

        Raises SaslFailedError.
        """
        if self._sent is ApiVersionsRequest:
            return self._shake_hands(self._response(frame, ApiVersionsResponse))
        if self._sent is SaslHandshakeRequest:
            self._check_handshake(self._response(frame, SaslHandshakeResponse))
            return self._authenticate(self._evaluate(b""))
        response = self._response(frame, SaslAuthenticateResponse)
        if response.error_code != ErrorCode.NONE:
            code = known_error_code(response.error_code)
            raise SaslFailedError(code, response.error_message or code.default_message)
        self.session_lifetime_ms = response.session_lifetime_ms
        token = self._evaluate(response.auth_bytes)
        return None if self._client.is_complete else self._authenticate(token)

    def _shake_hands(self, response: ApiVersionsResponse) -> bytes:
        """Choose the mechanism, in versions that both sides have."""
        if response.error_code != ErrorCode.NONE:
            raise SaslFailedError(known_error_code(response.error_code), None)
        self._versions = {one.api_key: one.max_version for one in response.api_keys}
        return self._handshake()

    def _handshake(self) -> bytes:
        version = self._common_version(SaslHandshakeRequest)
        if version < _FIRST_VERSION_WITH_REQUESTS:
            raise SaslFailedError(
                ErrorCode.UNSUPPORTED_VERSION, "The node does not know SaslAuthenticate requests"
            )
        return self._request(SaslHandshakeRequest(self._mechanism), version)

    def _check_handshake(self, response: SaslHandshakeResponse) -> None:
        """Raise SaslFailedError for a mechanism that the server does not take."""
        enabled = f"[{', '.join(response.mechanisms)}]"
        match response.error_code:
            case ErrorCode.NONE:
                return
            case ErrorCode.UNSUPPORTED_SASL_MECHANISM:
                text = (
                    f"Client SASL mechanism '{self._mechanism}' not enabled in the server, enabled "
                    f"mechanisms are {enabled}"
                )
            case ErrorCode.ILLEGAL_SASL_STATE:
                text = (
                    f"Unexpected handshake request with client mechanism {self._mechanism}, "
                    f"enabled mechanisms are {enabled}"
                )
            case _:
                text = (
                    f"Unknown error code {known_error_code(response.error_code).name}, client "
                    f"mechanism is {self._mechanism}, enabled mechanisms are {enabled}"
                )
        code = known_error_code(response.error_code)
        is_of_sasl = code in {ErrorCode.UNSUPPORTED_SASL_MECHANISM, ErrorCode.ILLEGAL_SASL_STATE}
        raise SaslFailedError(code if is_of_sasl else ErrorCode.ILLEGAL_SASL_STATE, text)

    def _authenticate(self, token: bytes) -> bytes:
        version = self._common_version(SaslAuthenticateRequest)
        return self._request(SaslAuthenticateRequest(token), version)

    def _evaluate(self, received: bytes) -> bytes:
        try:
            return self._client.evaluate(received)
        except SaslServerError as error:
            raise SaslFailedError(
                ErrorCode.SASL_AUTHENTICATION_FAILED,
                f"An error: ({_EXCEPTIONS}: {error}) occurred when evaluating SASL token received "
                "from the Kafka Broker. Kafka Client will go to AUTHENTICATION_FAILED state.",
            ) from error

    def _common_version(self, request: type[Message]) -> int:
        assert request.API_KEY is not None
        theirs = self._versions.get(request.API_KEY)
        if theirs is None:
            name = ApiKey(request.API_KEY).name
            raise SaslFailedError(
                ErrorCode.UNSUPPORTED_VERSION, f"The node does not support {name}"
            )
        return min(theirs, request.MAX_VERSION)

    def _request(self, request: Message, version: int) -> bytes:
        self._correlation_id += 1
        self._version = version
        self._sent = type(request)
        return encode_request_frame(
            request,
            version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )

    def _response(self, frame: bytes, kind: type[Response]) -> Response:
        try:
            header, response = decode_response_frame(
                frame, response_class=kind, version=self._version
            )
        except WireError as error:
            raise _no_response() from error
        if header.correlation_id != self._correlation_id:
            raise _no_response()
        return response


def _no_response() -> SaslFailedError:
    return SaslFailedError(
        ErrorCode.ILLEGAL_SASL_STATE,
        "Invalid SASL mechanism response, server may be expecting a different protocol",
    )
