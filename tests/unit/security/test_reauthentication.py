"""Sessions with an end, and clients that authenticate again (KIP-368)."""

from collections.abc import Mapping
from typing import Final

import pytest
from tests.support.sasl_exchange import decoded, frame

from kvorum.security.plain_server import PlainServer
from kvorum.security.sasl_server import AuthenticatedUser, SaslBrokenError, SaslError, SaslMechanism
from kvorum.security.sasl_server_authenticator import (
    Authentication,
    FailedAuthenticationError,
    IllegalSaslStateError,
    SaslServerAuthenticator,
)
from kvorum.security.session_lifetime import SESSION_MS_MAX, session_lifetime_ms
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kvorum.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

NOW_MS: Final = 1_000_000
SESSION_MS: Final = 60_000
BEFORE: Final = Authentication(AuthenticatedUser("alice"), "PLAIN", SESSION_MS, True)
RIGHT: Final = b"\0alice\0as"
OTHER: Final = b"\0bob\0bs"
CHANGED_USER: Final = "Cannot change principals during re-authentication from User.alice: User.bob"


class Expiring:
    """A mechanism that takes any token for alice's, whose credential expires."""

    def __init__(self, expires_at_ms: int) -> None:
        self.user: AuthenticatedUser | None = None
        self._expires_at_ms = expires_at_ms

    def evaluate(self, token: bytes) -> bytes:
        self.user = AuthenticatedUser("alice", self._expires_at_ms)
        return token


class Refusing:
    """A mechanism that refuses every client without a reason."""

    user: AuthenticatedUser | None = None

    def evaluate(self, token: bytes) -> bytes:
        raise SaslError(token)


PLAIN: Final = SaslMechanism(lambda: PlainServer({"alice": "as", "bob": "bs"}), SESSION_MS)


def authenticator(
    *, before: Authentication | None = None, mechanisms: Mapping[str, SaslMechanism] | None = None
) -> SaslServerAuthenticator:
    offered = {"PLAIN": PLAIN, "OTHER": SaslMechanism(Refusing)}
    return SaslServerAuthenticator(mechanisms or offered, lambda: NOW_MS, before)


def shaken(
    before: Authentication | None, mechanism: str = "PLAIN", version: int = 1
) -> SaslServerAuthenticator:
    one = authenticator(before=before)
    answer = one.receive(frame(SaslHandshakeRequest(mechanism), version))
    response = decoded(answer, SaslHandshakeResponse, version)
    assert (response.error_code, response.mechanisms) == (ErrorCode.NONE, ["PLAIN", "OTHER"])
    return one


def authenticate(one: SaslServerAuthenticator, token: bytes) -> SaslAuthenticateResponse:
    answer = one.receive(frame(SaslAuthenticateRequest(token), 2))
    return decoded(answer, SaslAuthenticateResponse, 2)


@pytest.mark.parametrize(
    ("session_ms_max", "expires_at_ms", "lifetime_ms"),
    [
        (0, None, None),
        (-1, None, None),
        (60_000, None, 60_000),
        (0, NOW_MS + 5_000, 5_000),
        (-1, NOW_MS + 5_000, 5_000),
        (60_000, NOW_MS + 5_000, 5_000),
        (4_000, NOW_MS + 5_000, 4_000),
        # A credential that has expired makes a session that is over, and not one without an end.
        (0, NOW_MS, 0),
        (0, NOW_MS - 5_000, 0),
        (60_000, NOW_MS - 5_000, 0),
        (SESSION_MS_MAX, None, SESSION_MS_MAX),
    ],
)
def test_a_session_lasts_for_the_shorter_of_setting_and_credential(
    session_ms_max: int, expires_at_ms: int | None, lifetime_ms: int | None
) -> None:
    lasts = session_lifetime_ms(
        session_ms_max=session_ms_max, expires_at_ms=expires_at_ms, now_ms=NOW_MS
    )
    assert lasts == lifetime_ms


def test_a_session_that_kafka_cannot_count_ends_the_connection() -> None:
    with pytest.raises(SaslBrokenError):
        session_lifetime_ms(session_ms_max=SESSION_MS_MAX + 1, expires_at_ms=None, now_ms=NOW_MS)
    expires_at_ms = NOW_MS + SESSION_MS_MAX + 1
    one = authenticator(mechanisms={"X": SaslMechanism(lambda: Expiring(expires_at_ms))})
    one.receive(frame(SaslHandshakeRequest("X"), 1))
    with pytest.raises(SaslBrokenError):
        authenticate(one, b"")


@pytest.mark.parametrize("before", [None, BEFORE], ids=["first", "again"])
def test_a_client_hears_how_long_its_session_lasts(before: Authentication | None) -> None:
    one = shaken(before)
    response = authenticate(one, RIGHT)
    assert (response.error_code, response.session_lifetime_ms) == (ErrorCode.NONE, SESSION_MS)
    assert one.authentication == BEFORE


@pytest.mark.parametrize("version", [0, 1], ids=["bare token", "first version"])
def test_the_session_of_a_client_that_does_not_hear_of_it_has_an_end_as_well(version: int) -> None:
    one = shaken(None, version=version)
    one.receive(RIGHT if version == 0 else frame(SaslAuthenticateRequest(RIGHT), 0))
    assert one.authentication == BEFORE._replace(knows_lifetime=False)


def test_a_client_may_not_become_another_user() -> None:
    with pytest.raises(FailedAuthenticationError, match=CHANGED_USER) as raised:
        authenticate(shaken(BEFORE), OTHER)
    response = decoded(raised.value.response, SaslAuthenticateResponse, 2)
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == CHANGED_USER
    with pytest.raises(FailedAuthenticationError, match=CHANGED_USER) as raised:
        shaken(BEFORE, version=0).receive(OTHER)
    assert raised.value.response is None


@pytest.mark.parametrize("following", [b"", frame(ApiVersionsRequest(), 0), RIGHT])
def test_a_client_may_not_change_its_mechanism(following: bytes) -> None:
    one = shaken(BEFORE, "OTHER")
    with pytest.raises(FailedAuthenticationError) as raised:
        one.receive(following)
    assert raised.value.response is None
    assert str(raised.value) == (
        "SASL mechanism 'OTHER' requested by client is not supported for re-authentication of "
        "mechanism 'PLAIN'"
    )


def test_a_mechanism_that_is_not_enabled_ends_the_connection_of_a_client_that_was_let_in() -> None:
    with pytest.raises(SaslBrokenError):
        shaken(BEFORE, "GSSAPI")


def test_a_refusal_says_that_the_client_was_to_authenticate_again() -> None:
    one = shaken(BEFORE._replace(mechanism="OTHER"), "OTHER")
    with pytest.raises(FailedAuthenticationError) as raised:
        authenticate(one, RIGHT)
    assert str(raised.value) == (
        "Authentication failed during re-authentication due to invalid credentials with SASL "
        "mechanism OTHER"
    )


def test_only_a_token_may_follow_the_handshake() -> None:
    with pytest.raises(IllegalSaslStateError):
        shaken(BEFORE).receive(frame(ApiVersionsRequest(), 0))
