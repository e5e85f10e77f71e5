"""The exchange before a session: which frames may come, and what answers them."""

from typing import Final

import pytest
from tests.support.sasl_exchange import decoded, frame

from kvorum.security.plain_server import PlainServer
from kvorum.security.sasl_server import AuthenticatedUser, SaslBrokenError, SaslError, SaslMechanism
from kvorum.security.sasl_server_authenticator import (
    FailedAuthenticationError,
    IllegalSaslStateError,
    SaslServerAuthenticator,
)
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest
from kvorum.wire.messages.metadata import MetadataRequest
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kvorum.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

TOKEN: Final = b"\0alice\0as"
WRONG: Final = b"\0alice\0bs"
WRONG_PASSWORD: Final = "Authentication failed: Invalid username or password"
# Seen on a real node: a request and its response, both without their length.
HANDSHAKE: Final = bytes.fromhex("001100010000000100016300") + b"\x05PLAIN"
HANDSHAKE_ANSWER: Final = bytes.fromhex("000000010000000000010005504c41494e")
AUTHENTICATE: Final = bytes.fromhex("0024000200000002000163000a00616c69636500617300")
AUTHENTICATE_ANSWER: Final = bytes.fromhex("000000020000000101000000000000000000")


class Refusing:
    """A mechanism that refuses every client without a reason."""

    user: AuthenticatedUser | None = None

    def evaluate(self, token: bytes) -> bytes:
        raise SaslError(token)


def authenticator(**more: SaslMechanism) -> SaslServerAuthenticator:
    plain = SaslMechanism(lambda: PlainServer({"alice": "as"}))
    return SaslServerAuthenticator({"PLAIN": plain, **more}, lambda: 0)


def user_of(one: SaslServerAuthenticator) -> str:
    assert one.authentication is not None
    return one.authentication.user.name


def shaken(
    version: int = 1, mechanism: str = "PLAIN", **more: SaslMechanism
) -> SaslServerAuthenticator:
    one = authenticator(**more)
    one.receive(frame(SaslHandshakeRequest(mechanism), version))
    return one


def test_the_bytes_are_those_of_a_real_node() -> None:
    one = authenticator()
    assert one.receive(HANDSHAKE) == HANDSHAKE_ANSWER
    assert one.authentication is None
    assert one.receive(AUTHENTICATE) == AUTHENTICATE_ANSWER
    assert user_of(one) == "alice"


def test_bytes_after_the_mechanism_are_ignored() -> None:
    assert authenticator().receive(HANDSHAKE + b"more") == HANDSHAKE_ANSWER


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_token_comes_in_every_version_of_its_request(version: int) -> None:
    one = shaken()
    answer = one.receive(frame(SaslAuthenticateRequest(TOKEN), version))
    response = decoded(answer, SaslAuthenticateResponse, version)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, "")
    assert user_of(one) == "alice"


def test_a_refused_token_is_answered_with_the_text_for_the_client() -> None:
    with pytest.raises(FailedAuthenticationError, match=WRONG_PASSWORD) as raised:
        shaken().receive(frame(SaslAuthenticateRequest(WRONG), 2))
    response = decoded(raised.value.response, SaslAuthenticateResponse, 2)
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == WRONG_PASSWORD
    assert response.auth_bytes == b""


def test_a_mechanism_that_does_not_say_why_is_named_and_nothing_else() -> None:
    one = shaken(mechanism="REFUSING", REFUSING=SaslMechanism(Refusing))
    with pytest.raises(FailedAuthenticationError) as raised:
        one.receive(frame(SaslAuthenticateRequest(TOKEN), 2))
    assert str(raised.value) == (
        "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism REFUSING"
    )


def test_after_the_first_version_of_the_handshake_tokens_are_bare() -> None:
    one = shaken(version=0)
    assert one.receive(TOKEN) == b""
    assert user_of(one) == "alice"


def test_a_refused_bare_token_has_no_response() -> None:
    with pytest.raises(FailedAuthenticationError) as raised:
        shaken(version=0).receive(WRONG)
    assert raised.value.response is None
    with pytest.raises(SaslBrokenError):
        shaken(version=0, mechanism="REFUSING", REFUSING=SaslMechanism(Refusing)).receive(TOKEN)


@pytest.mark.parametrize("mechanism", ["GSSAPI", "plain", " PLAIN", ""])
def test_a_mechanism_that_is_not_enabled_is_answered_with_those_that_are(mechanism: str) -> None:
    with pytest.raises(FailedAuthenticationError, match="Unsupported SASL mechanism") as raised:
        shaken(mechanism=mechanism)
    response = decoded(raised.value.response, SaslHandshakeResponse, 1)
    assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert response.mechanisms == ["PLAIN"]


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\x60\x82\x02\x46",
        frame(MetadataRequest(), 9),
        frame(SaslAuthenticateRequest(TOKEN), 2),
        HANDSHAKE[:3] + b"\x02" + HANDSHAKE[4:],
        HANDSHAKE[:11] + b"\xff\xff",
    ],
    ids=["nothing", "bare token", "other API", "token", "version 2", "null"],
)
@pytest.mark.parametrize("has_asked", [False, True])
def test_what_does_not_begin_an_authentication_ends_the_connection(
    first: bytes, has_asked: bool
) -> None:
    one = authenticator()
    if has_asked:
        one.has_answered_api_versions()
    with pytest.raises(SaslBrokenError):
        one.receive(first)


def test_api_versions_is_answered_elsewhere_until_it_has_succeeded() -> None:
    one = authenticator()
    request = frame(ApiVersionsRequest("test", "1"), 3)
    assert one.receive(request) is None
    assert one.receive(request) is None
    one.has_answered_api_versions()
    with pytest.raises(SaslBrokenError, match="authentication state HANDSHAKE_REQUEST"):
        one.receive(request)


@pytest.mark.parametrize(
    "request_frame",
    [HANDSHAKE, frame(ApiVersionsRequest(), 0), frame(MetadataRequest(), 9)],
    ids=["handshake", "versions", "metadata"],
)
def test_only_a_token_may_follow_the_handshake(request_frame: bytes) -> None:
    with pytest.raises(IllegalSaslStateError):
        shaken().receive(request_frame)


def test_a_token_in_an_unknown_version_ends_the_connection() -> None:
    with pytest.raises(SaslBrokenError):
        shaken().receive(AUTHENTICATE[:3] + b"\x03" + AUTHENTICATE[4:])


def test_mechanisms_are_listed_in_the_order_of_kafkas_hash_set() -> None:
    names = ("OAUTHBEARER", "SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
    one = SaslServerAuthenticator(dict.fromkeys(names, SaslMechanism(Refusing)), lambda: 0)
    answer = one.receive(frame(SaslHandshakeRequest("PLAIN"), 1))
    listed = decoded(answer, SaslHandshakeResponse, 1).mechanisms
    assert listed == ["SCRAM-SHA-512", "PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"]
