"""OAUTHBEARER on the server's side, with tokens that are unsecured."""

import json
from typing import Final

import pytest
from tests.support.oauth_tokens import encoded, message, unsecured_of

from kvorum.security.jaas_config import InvalidJaasConfigError
from kvorum.security.oauth_bearer_server import OAuthBearerServer
from kvorum.security.sasl_server import (
    AuthenticatedUser,
    SaslAuthenticationError,
    SaslBrokenError,
    SaslError,
)
from kvorum.security.unsecured_token import (
    UnsecuredTokenSettings,
    UnsecuredTokenValidator,
    unsecured_token_settings,
)

NOW_S: Final = 1_000_000
EXP: Final = NOW_S + 60
INVALID: Final = b'{"status":"invalid_token"}'
GIVEN_UP: Final = b"\x01"
ALICE: Final = AuthenticatedUser("alice", EXP * 1000)
CLAIMS: Final = {"sub": "alice", "exp": EXP}


def server(
    settings: UnsecuredTokenSettings | None = None, refusals: list[str] | None = None
) -> OAuthBearerServer:
    used = settings or UnsecuredTokenSettings()
    noted: list[str] = [] if refusals is None else refusals
    return OAuthBearerServer(UnsecuredTokenValidator(used, lambda: NOW_S * 1000), noted.append)


def token(**changes: object) -> str:
    whole = {**CLAIMS, **changes}
    return unsecured_of(
        json.dumps({key: value for key, value in whole.items() if value is not None})
    )


RIGHT: Final = message(token())


def test_a_token_lets_in_its_user_until_it_expires() -> None:
    one = server()
    assert one.evaluate(RIGHT) == b""
    assert one.user == ALICE


@pytest.mark.parametrize(
    "first",
    [
        message(token(), authorization_id="alice"),
        message(token(), more="traceId=1 2\x01logicalCluster=a=b\x01"),
        message("", auth=f"BEARER   {token()}"),
        message(token(iat=NOW_S)),
        message(token(exp=EXP)),
        message(token(scope=["a", " b "])),
        # The bytes after the value of a part are not looked at.
        message(unsecured_of(json.dumps(CLAIMS) + " more")),
    ],
)
def test_messages_and_tokens_that_differ_in_form_are_taken(first: bytes) -> None:
    one = server()
    assert one.evaluate(first) == b""
    assert one.user == ALICE


@pytest.mark.parametrize(
    ("name", "user"), [(" alice ", " alice "), (None, None), (True, "true"), ([], None), (7, None)]
)
def test_the_user_is_the_claim_as_a_text_with_its_blanks(name: object, user: str | None) -> None:
    one = server()
    answer = one.evaluate(message(token(sub=name)))
    assert (one.user.name if one.user else None) == user
    assert answer == (INVALID if user is None else b"")


INVALID_TOKENS: Final = {
    "no expiry": token(exp=None),
    "expiry of a text": token(exp="1"),
    "expired": token(exp=NOW_S),
    "issued later": token(iat=NOW_S + 1),
    "expires as it is issued": token(iat=NOW_S - 5, exp=NOW_S - 5),
    "blank user": token(sub="  "),
    "half of a character": token(sub="alice\ud83d"),
    "a number that goes on": f"{encoded(b'0{}')}.{encoded(b'{}')}.",
    "scope of a number": token(scope=1),
    "signature": token() + "AAAA",
    "another algorithm": unsecured_of(json.dumps(CLAIMS), '{"alg":"RS256"}'),
    "two parts": token().rstrip("."),
    "four parts": token() + "a.",
    "an empty part": f"{encoded(b'{}')}..",
    "no JSON": unsecured_of("{"),
    "no number of JSON": unsecured_of('{"sub": "alice", "exp": NaN}'),
    "deep JSON": unsecured_of("[" * 100_000),
    "no text of UTF-8": f"{encoded(b'{}')}.{encoded(bytes([0xFF, 0xFE, 0xFF]))}.",
    "no base64": "a+b.AA.",
    "a letter of base64": "AAAAA.AA.",
    "claims that are a list": unsecured_of("[]"),
}


@pytest.mark.parametrize("what", INVALID_TOKENS)
def test_an_invalid_token_is_answered_before_the_client_is_refused(what: str) -> None:
    one = server()
    assert one.evaluate(message(INVALID_TOKENS[what])) == INVALID
    assert one.user is None
    with pytest.raises(SaslAuthenticationError) as raised:
        one.evaluate(GIVEN_UP)
    assert str(raised.value) == INVALID.decode()


def test_the_node_notes_why_it_refuses_a_token() -> None:
    refusals: list[str] = []
    server(refusals=refusals).evaluate(message(token(exp=NOW_S)))
    assert refusals == ["the token has expired"]


def test_another_token_may_follow_one_that_is_invalid() -> None:
    one = server()
    assert one.evaluate(message(token(exp=NOW_S))) == INVALID
    assert one.evaluate(RIGHT) == b""
    assert one.user == ALICE


@pytest.mark.parametrize(
    "first",
    [
        *(b"", GIVEN_UP, b"n,,", b"n,,\x01\x01", RIGHT[1:], b"y" + RIGHT[1:], RIGHT + b"\x01"),
        RIGHT[:-1],
        message(token(), more="k1=v\x01"),
        message(token(), more="k=\x01"),
        message(token(), more="k=\xe9\x01"),
        message("", auth="Bearer"),
        message("", auth="Bearer a b"),
        message("", auth=token()),
        RIGHT.replace(b"auth", b"Auth"),
    ],
)
def test_a_message_of_another_form_is_refused_without_a_reason(first: bytes) -> None:
    for one in (server(), server()):
        with pytest.raises(SaslError) as raised:
            one.evaluate(first)
        assert not isinstance(raised.value, SaslAuthenticationError)


def test_the_client_has_to_be_the_user_of_its_token() -> None:
    with pytest.raises(SaslAuthenticationError) as raised:
        server().evaluate(message(token(), authorization_id="bob"))
    assert str(raised.value) == (
        "Authentication failed: Client requested an authorization id (bob) that is different from "
        "the token's principal name (alice)"
    )


@pytest.mark.parametrize(
    "first",
    [
        message("", auth=f"Basic {token()}"),
        message(unsecured_of(json.dumps(CLAIMS), "{}")),
        message(unsecured_of(json.dumps(CLAIMS), "[]")),
        message(unsecured_of(json.dumps(CLAIMS), "")),
    ],
    ids=["another scheme", "no algorithm", "a list", "an empty header"],
)
def test_where_kafkas_own_check_fails_the_connection_ends(first: bytes) -> None:
    with pytest.raises(SaslBrokenError):
        server().evaluate(first)


def test_the_options_of_the_login_module_say_what_a_token_needs() -> None:
    settings = unsecured_token_settings(
        {
            "unsecuredValidatorPrincipalClaimName": "name",
            "unsecuredValidatorScopeClaimName": "roles",
            "unsecuredValidatorRequiredScope": "a b",
            "unsecuredValidatorAllowableClockSkewMs": "5000",
        }
    )
    one = server(settings)
    lacking = one.evaluate(message(token(name="bob", roles=["a"])))
    assert lacking == b'{"status":"insufficient_scope", "scope":"[a, b]"}'
    inside = {"iat": NOW_S + 5, "exp": NOW_S + 6}
    assert one.evaluate(message(token(name="bob", roles=["b", "a"], **inside))) == b""
    assert one.user == AuthenticatedUser("bob", (NOW_S + 6) * 1000)
    late = message(token(name="bob", roles=["b", "a"], iat=NOW_S - 9, exp=NOW_S - 4))
    assert server(settings).evaluate(late) == b""
    at_once = message(token(name="bob", roles=["b", "a"], iat=NOW_S + 5, exp=NOW_S + 5))
    assert server(settings).evaluate(at_once) == INVALID
    early = message(token(name="bob", roles=["b", "a"], iat=NOW_S + 6, exp=NOW_S + 7))
    assert server(settings).evaluate(early) == INVALID


def test_a_negative_skew_is_refused() -> None:
    with pytest.raises(InvalidJaasConfigError, match="AllowableClockSkewMs"):
        unsecured_token_settings({"unsecuredValidatorAllowableClockSkewMs": "-1"})


def test_an_expiry_that_is_too_large_for_java_is_the_largest_that_is_not() -> None:
    one = server()
    one.evaluate(message(token(exp=10**400)))
    assert one.user is not None
    assert one.user.expires_at_ms == 2**63 - 1
