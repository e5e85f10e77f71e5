"""The client's way through SASL, with a server of ours, and with answers that it does not take."""

from collections.abc import Mapping
from functools import partial
from hashlib import new as new_hash
from hashlib import pbkdf2_hmac
from hmac import digest
from typing import Final

import pytest

from kvorum.metadata.credentials_image import SCRAM_DIGESTS, ScramCredential
from kvorum.security.plain_server import PlainServer
from kvorum.security.sasl_client_authenticator import (
    FIRST_CORRELATION_ID,
    SaslClientAuthenticator,
    SaslFailedError,
)
from kvorum.security.sasl_login import SaslLogin
from kvorum.security.sasl_login_modules import SCRAM
from kvorum.security.sasl_server import AuthenticatedUser, SaslMechanism
from kvorum.security.sasl_server_authenticator import (
    FailedAuthenticationError,
    SaslServerAuthenticator,
)
from kvorum.security.scram_server import ScramLogin, ScramServer
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_request_frame, encode_response_frame
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kvorum.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kvorum.wire.primitives import Message

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD: Final = "of alice"
VERSIONS: Final[Mapping[int, int]] = {ApiKey.SASL_HANDSHAKE: 1, ApiKey.SASL_AUTHENTICATE: 2}
REFUSED_BY_SCRAM: Final = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism "
    "SCRAM-SHA-512"
)
UNKNOWN_ERROR: Final = (
    "Unknown error code UNKNOWN_SERVER_ERROR, client mechanism is PLAIN, enabled mechanisms are []"
)
SALT: Final = b"salt"
ITERATIONS: Final = 4096


def client(mechanism: str = "PLAIN", password: str = PASSWORD) -> SaslClientAuthenticator:
    return SaslClientAuthenticator(SaslLogin(mechanism, "alice", password), "raft-client-1")


def credential(mechanism: str) -> ScramCredential:
    name = SCRAM_DIGESTS[SCRAM[mechanism]]
    salted = pbkdf2_hmac(name, PASSWORD.encode(), SALT, ITERATIONS)
    stored_key = new_hash(name, digest(salted, b"Client Key", name)).digest()
    return ScramCredential(SALT, stored_key, digest(salted, b"Server Key", name), ITERATIONS)


def mechanism_of(mechanism: str) -> SaslMechanism:
    if mechanism == "PLAIN":
        return SaslMechanism(lambda: PlainServer({"alice": PASSWORD}))
    login = ScramLogin(credential(mechanism), AuthenticatedUser("alice"))
    return SaslMechanism(partial(ScramServer, SCRAM[mechanism], lambda _: login, "server"))


def server_of(*mechanisms: str) -> SaslServerAuthenticator:
    return SaslServerAuthenticator({each: mechanism_of(each) for each in mechanisms}, lambda: 0)


def answer(frame: bytes, response: Message) -> bytes:
    header, _ = decode_request_frame(frame)
    version = header.request_api_version
    return encode_response_frame(response, version=version, correlation_id=header.correlation_id)


def offered(versions: Mapping[int, int] = VERSIONS) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[ApiVersionsResponse.ApiVersion(key, 0, most) for key, most in versions.items()]
    )


def let_in(one: SaslClientAuthenticator, server: SaslServerAuthenticator) -> list[tuple[int, int]]:
    """Carry frames between both until the client is let in; return key and version of each."""
    asked: list[tuple[int, int]] = []
    frame: bytes | None = one.begin()
    while frame is not None:
        header, _ = decode_request_frame(frame)
        assert header.client_id == "raft-client-1"
        assert header.correlation_id == FIRST_CORRELATION_ID + len(asked)
        asked.append((header.request_api_key, header.request_api_version))
        frame = one.receive(responded(server, frame))
    return asked


def responded(server: SaslServerAuthenticator, frame: bytes) -> bytes:
    try:
        return server.receive(frame) or answer(frame, offered())
    except FailedAuthenticationError as error:
        return error.response or b""


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_with_the_password_is_let_in_by_the_requests_of_kafkas(mechanism: str) -> None:
    server = server_of(mechanism)
    asked = let_in(client(mechanism), server)
    tokens = 1 if mechanism == "PLAIN" else 2
    assert asked == [(18, 0), (17, 1), *[(36, 2)] * tokens]
    assert server.is_authenticated


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_that_was_let_in_begins_again_with_the_handshake(mechanism: str) -> None:
    one = client(mechanism)
    let_in(one, server_of(mechanism))
    again = server_of(mechanism)
    again.receive(client(mechanism).begin())
    frame: bytes | None = one.begin_again()
    asked: list[tuple[int, int]] = []
    while frame is not None:
        header, _ = decode_request_frame(frame)
        asked.append((header.request_api_key, header.correlation_id - FIRST_CORRELATION_ID))
        frame = one.receive(responded(again, frame))
    assert asked[:2] == [(ApiKey.SASL_HANDSHAKE, 0), (ApiKey.SASL_AUTHENTICATE, 1)]
    assert again.is_authenticated


@pytest.mark.parametrize(
    ("mechanism", "text"),
    [
        ("PLAIN", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-512", REFUSED_BY_SCRAM),
    ],
)
def test_a_wrong_password_has_the_text_of_the_server(mechanism: str, text: str) -> None:
    server = server_of(mechanism)
    with pytest.raises(SaslFailedError) as raised:
        let_in(client(mechanism, "guess"), server)
    assert str(raised.value) == text
    assert raised.value.code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "guess" not in str(raised.value)


def test_a_mechanism_that_is_not_enabled_has_the_text_of_kafkas_client() -> None:
    server = server_of(*MECHANISMS[:2])
    with pytest.raises(SaslFailedError) as raised:
        let_in(client("SCRAM-SHA-512"), server)
    assert raised.value.code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert str(raised.value) == (
        "Client SASL mechanism 'SCRAM-SHA-512' not enabled in the server, enabled mechanisms are "
        "[PLAIN, SCRAM-SHA-256]"
    )


def handed_over(one: SaslClientAuthenticator, *responses: Message) -> bytes | None:
    """Answer one request after the other; return what is left to send."""
    frame: bytes | None = one.begin()
    for response in responses:
        assert frame is not None
        frame = one.receive(answer(frame, response))
    return frame


@pytest.mark.parametrize("theirs", [1, 2, 7])
def test_versions_are_the_highest_that_both_sides_have(theirs: int) -> None:
    versions: dict[int, int] = {ApiKey.SASL_HANDSHAKE: theirs, ApiKey.SASL_AUTHENTICATE: theirs}
    asked = handed_over(client(), offered(versions), SaslHandshakeResponse(mechanisms=["PLAIN"]))
    assert asked is not None
    header, _ = decode_request_frame(asked)
    assert header.request_api_version == min(theirs, SaslAuthenticateRequest.MAX_VERSION)


@pytest.mark.parametrize(
    ("responses", "code", "said"),
    [
        (
            [offered(), SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)],
            ErrorCode.ILLEGAL_SASL_STATE,
            "Unexpected handshake request with client mechanism PLAIN, enabled mechanisms are []",
        ),
        (
            [offered(), SaslHandshakeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)],
            ErrorCode.ILLEGAL_SASL_STATE,
            UNKNOWN_ERROR,
        ),
        (
            [
                offered(),
                SaslHandshakeResponse(mechanisms=["PLAIN"]),
                SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE),
            ],
            ErrorCode.ILLEGAL_SASL_STATE,
            ErrorCode.ILLEGAL_SASL_STATE.default_message,
        ),
        ([offered({})], ErrorCode.UNSUPPORTED_VERSION, "The node does not support SASL_HANDSHAKE"),
        (
            [offered({ApiKey.SASL_HANDSHAKE: 0})],
            ErrorCode.UNSUPPORTED_VERSION,
            "The node does not know SaslAuthenticate requests",
        ),
    ],
)
def test_what_a_server_refuses_ends_the_exchange(
    responses: list[Message], code: ErrorCode, said: str
) -> None:
    with pytest.raises(SaslFailedError) as raised:
        handed_over(client(), *responses)
    assert (raised.value.code, str(raised.value)) == (code, said)


def test_a_server_that_does_not_know_the_password_is_not_believed() -> None:
    with pytest.raises(SaslFailedError) as raised:
        handed_over(
            client("SCRAM-SHA-256"),
            offered(),
            SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]),
            SaslAuthenticateResponse(auth_bytes=b"r=other,s=AAAA,i=4096"),
        )
    assert str(raised.value) == (
        "An error: (java.util.concurrent.CompletionException: javax.security.sasl.SaslException: "
        "Invalid server nonce: does not start with client nonce) occurred when evaluating SASL "
        "token received from the Kafka Broker. Kafka Client will go to AUTHENTICATION_FAILED state."
    )


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 400 Bad Request",
        encode_response_frame(offered(), version=0, correlation_id=FIRST_CORRELATION_ID + 1),
    ],
    ids=["not a response", "a response to another request"],
)
def test_bytes_that_do_not_answer_the_request_end_the_exchange(response: bytes) -> None:
    one = client()
    assert decode_request_frame(one.begin())[0].request_api_key == ApiVersionsRequest.API_KEY
    with pytest.raises(SaslFailedError, match="expecting a different protocol"):
        one.receive(response)


def test_the_server_tells_when_the_session_ends() -> None:
    one = client()
    end = SaslAuthenticateResponse(session_lifetime_ms=5_000)
    handed_over(one, offered(), SaslHandshakeResponse(mechanisms=["PLAIN"]), end)
    assert one.session_lifetime_ms == 5_000


def test_the_handshake_names_the_mechanism() -> None:
    frame = handed_over(client("SCRAM-SHA-256"), offered())
    assert frame is not None
    _, body = decode_request_frame(frame)
    assert SaslHandshakeRequest.decode(body, 1) == SaslHandshakeRequest("SCRAM-SHA-256")
