"""Signed tokens of OAUTHBEARER: their issuer, audience, times and key."""

import hmac
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, OctKey
from tests.support.oauth_tokens import HOUR_S, claims, encoded, unsecured
from tests.support.token_issuer import AUDIENCE, ISSUER, Issuer, new_rsa_key

from kvorum.security.errors import InvalidOAuthSettingsError
from kvorum.security.oauth_bearer_server import BearerToken, InvalidTokenError
from kvorum.security.oauth_settings import OAuthSettings
from kvorum.security.signed_token import SignedTokenValidator, file_validator

NOW_S: Final = int(str(claims()["iat"]))
END_S: Final = NOW_S + HOUR_S
SKEW_S: Final = 30
ALICE: Final = BearerToken("alice", END_S * 1000)
FIRST: Final = new_rsa_key("first")
OURS: Final = Issuer([FIRST, new_rsa_key("second")])
STRANGER: Final = Issuer()
SETTINGS: Final = OAuthSettings(
    jwks_url="file:///keys",
    allowed_urls=("file:///keys",),
    expected_audience=("other", AUDIENCE),
    expected_issuer=ISSUER,
    takes_any_audience=False,
    takes_any_issuer=False,
    clock_skew_seconds=SKEW_S,
    scope_claim="scope",
    subject_claim="sub",
    refresh_ms=600_000,
    retry_backoff_ms=100,
    retry_backoff_ms_max=500,
)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "keys.json"
    path.write_text(OURS.key_set())
    return path


@pytest.fixture
def validate(key_file: Path) -> SignedTokenValidator:
    return validator(key_file)


def validator(path: Path, settings: OAuthSettings = SETTINGS) -> SignedTokenValidator:
    return file_validator(settings, path, lambda: NOW_S * 1000 + 999)


def token(**changes: object) -> str:
    times = {"iat": NOW_S, "exp": END_S}
    whole = claims(**{"aud": AUDIENCE, "iss": ISSUER, **times, **changes})
    return OURS.token_of(json.dumps(whole))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sub": " alice "},
        {"aud": ["x", AUDIENCE]},
        {"aud": "other"},
        {"scope": "a b"},
        {"scope": ["a", "b"]},
        {"scope": 7},
        {"nbf": NOW_S + SKEW_S},
        # As in Kafka, a token may be issued later.
        {"iat": NOW_S + 600},
        {"iat": NOW_S + 0.5},
    ],
)
def test_a_token_of_the_issuer_names_its_user(
    validate: SignedTokenValidator, changes: dict[str, object]
) -> None:
    assert validate(token(**changes)) == ALICE


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"pi.atm": "4"},
        {"x5c": ["x" * 4_000]},
        {"typ": 7},
        {"jku": "no address"},
        {"crit": ["b64"], "b64": True},
        {"crit": ["b64"]},
    ],
    ids=str,
)
def test_a_token_is_taken_whatever_else_its_header_has(
    validate: SignedTokenValidator, header: dict[str, object]
) -> None:
    assert validate(OURS.token_with(header, iat=NOW_S, exp=END_S)) == ALICE


def test_a_token_may_be_as_long_as_its_frame(validate: SignedTokenValidator) -> None:
    assert validate(token(more="x" * 300_000)) == ALICE


def test_a_token_is_taken_for_the_time_that_clocks_may_differ(
    validate: SignedTokenValidator,
) -> None:
    late = token(iat=NOW_S - HOUR_S, exp=NOW_S - SKEW_S + 1)
    assert validate(late).expires_at_ms == (NOW_S - SKEW_S + 1) * 1000
    with pytest.raises(InvalidTokenError, match="expired"):
        validate(token(iat=NOW_S - HOUR_S, exp=NOW_S - SKEW_S))


REFUSED: Final[dict[str, str]] = {
    "no expiry": token(exp=None),
    "no time of issue": token(iat=None),
    "expiry of a text": token(exp=str(END_S)),
    "expiry that is true": token(exp=True),
    "expires before it is issued": token(iat=END_S + 1),
    "not valid yet": token(nbf=NOW_S + SKEW_S + 1),
    "valid after its end": token(iat=NOW_S - HOUR_S, exp=NOW_S - 10, nbf=NOW_S - 5),
    "start that is true": token(nbf=True),
    "no user": token(sub=None),
    "blank user": token(sub=" "),
    "user of a number": token(sub=7),
    "no audience": token(aud=None),
    "another audience": token(aud=["x"]),
    "audience of a number": token(aud=7),
    "audience of numbers": token(aud=[AUDIENCE, 7]),
    "no issuer": token(iss=None),
    "another issuer": token(iss=f"{ISSUER}/"),
    "id of a number": token(jti=7),
    "blank scope": token(scope=" "),
    "scope twice": token(scope=["a", "a"]),
    "of a stranger": STRANGER.token(),
    "of a stranger's key": OURS.token(key=STRANGER.keys[0], header={"kid": "first"}),
    "by the other key": OURS.token(key=OURS.keys[1], header={"kid": "first"}),
    "unknown key": OURS.token(header={"kid": "third"}),
    "another algorithm of the header": OURS.token(header={"alg": "PS256"}).replace(
        OURS.token(header={"alg": "PS256"}).split(".")[0], OURS.token().split(".")[0]
    ),
    "unsecured": unsecured(aud=AUDIENCE, iss=ISSUER) + "x",
    "without a signature": unsecured(aud=AUDIENCE, iss=ISSUER),
    "changed claims": ".".join(
        (token().split(".")[0], token(sub="bob").split(".")[1], token().split(".")[2])
    ),
    "a name twice": OURS.token_of(
        json.dumps(claims(aud=AUDIENCE, iss=ISSUER))[:-1] + ', "sub": "bob"}'
    ),
    "no JSON": OURS.token_of("{"),
    "a list": OURS.token_of("[]"),
    "critical that is a number": OURS.token_with({"crit": 5}),
    "critical that is a list of objects": OURS.token_with({"crit": [dict[str, object]()]}),
    "critical and not known": OURS.token_with({"crit": ["pi.atm"], "pi.atm": "4"}),
    "critical that every token has": OURS.token_with({"crit": ["kid"]}),
    "two parts": "a.b",
    "an empty part": "a..b",
    "no base64": "a.b.c",
}


@pytest.mark.parametrize("what", REFUSED)
def test_any_other_token_is_refused(validate: SignedTokenValidator, what: str) -> None:
    with pytest.raises(InvalidTokenError):
        validate(REFUSED[what])


def test_a_symmetric_signature_by_a_public_key_is_refused(key_file: Path) -> None:
    header = encoded(json.dumps({"alg": "HS256", "kid": "first"}).encode())
    signed = f"{header}.{token().split('.')[1]}"
    public = FIRST.as_pem(private=False)
    signature = encoded(hmac.digest(public, signed.encode(), "sha256"))
    with pytest.raises(InvalidTokenError, match="no key"):
        validator(key_file)(f"{signed}.{signature}")


def test_each_type_of_key_verifies_its_algorithms(tmp_path: Path) -> None:
    curve = ECKey.generate_key("P-256", {"kid": "curve"})
    secret = OctKey.generate_key(256, {"kid": "secret"})
    issuer = Issuer([new_rsa_key("rsa"), curve, secret])
    path = tmp_path / "keys.json"
    path.write_text(issuer.key_set())
    by_algorithm = {"PS512": issuer.keys[0], "ES256": curve, "HS256": secret}
    for algorithm, key in by_algorithm.items():
        signed = issuer.token(key=key, header={"alg": algorithm}, iat=NOW_S, exp=END_S)
        assert validator(path)(signed) == ALICE


@pytest.mark.parametrize(
    ("fields", "is_taken"),
    [
        ({}, True),
        ({"use": "sig", "key_ops": ["verify"], "alg": "RS256"}, True),
        ({"use": "enc"}, False),
        ({"key_ops": ["sign"]}, False),
        ({"kid": "third"}, False),
        # The algorithm of a lone key does not count.
        ({"alg": "RS512"}, True),
    ],
)
def test_a_key_is_taken_for_what_it_says_of_itself(
    tmp_path: Path, fields: dict[str, object], is_taken: bool
) -> None:
    key = {**json.loads(OURS.key_set())["keys"][0], **fields}
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [key, {"kty": "RSA"}, "no key"]}))
    verify: Callable[[], BearerToken] = lambda: validator(path)(token())  # noqa: E731 - asked twice
    if is_taken:
        assert verify() == ALICE
        return
    with pytest.raises(InvalidTokenError):
        verify()


def test_a_token_without_the_id_of_a_key_takes_one_for_its_algorithm(tmp_path: Path) -> None:
    first, second = json.loads(OURS.key_set())["keys"]
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [{**first, "alg": "RS512"}, {**second, "alg": "RS256"}]}))
    nameless = OURS.token(key=OURS.keys[1], header={"kid": None}, iat=NOW_S, exp=END_S)
    assert validator(path)(nameless) == ALICE


def test_a_short_key_is_not_taken(tmp_path: Path) -> None:
    with pytest.warns(SecurityWarning):
        issuer = Issuer([new_rsa_key("short", 1_024)])
    path = tmp_path / "keys.json"
    path.write_text(issuer.key_set())
    with pytest.raises(InvalidTokenError, match="no key"):
        validator(path)(issuer.token())


def test_keys_are_read_again_once_their_file_has_changed(key_file: Path) -> None:
    validate = validator(key_file)
    later = STRANGER.token(iat=NOW_S, exp=END_S)
    with pytest.raises(InvalidTokenError):
        validate(later)
    for number, (text, is_readable) in enumerate(((STRANGER.key_set(), True), ("{", False)), 1):
        key_file.write_text(text)
        os.utime(key_file, (NOW_S + number, NOW_S + number))
        if is_readable:
            assert validate(later) == ALICE
            # A file with the same time is the same.
            key_file.write_text("{")
            os.utime(key_file, (NOW_S + number, NOW_S + number))
            assert validate(later) == ALICE
        else:
            with pytest.raises(InvalidTokenError, match="cannot be read"):
                validate(later)


def test_without_an_expectation_any_audience_and_issuer_are_taken(key_file: Path) -> None:
    open_settings = replace(
        SETTINGS,
        expected_audience=(),
        expected_issuer=None,
        takes_any_audience=True,
        takes_any_issuer=True,
    )
    validate = validator(key_file, open_settings)
    assert validate(token(aud=None, iss=None)) == ALICE
    assert validate(token(aud=["x"], iss="x")) == ALICE


def test_claims_have_the_names_of_the_settings(key_file: Path) -> None:
    settings = replace(SETTINGS, subject_claim="name", scope_claim="roles")
    validate = validator(key_file, settings)
    assert validate(token(name="bob", scope=["a", "a"])).user == "bob"
    with pytest.raises(InvalidTokenError):
        validate(token(name="bob", roles=["a", "a"]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            replace(SETTINGS, jwks_url=None),
            '"sasl.oauthbearer.jwks.endpoint.url" to be configured so that JWT',
        ),
        (
            replace(SETTINGS, expected_audience=()),
            '"sasl.oauthbearer.expected.audience" to be configured',
        ),
        (
            replace(SETTINGS, expected_issuer=None),
            '"sasl.oauthbearer.expected.issuer" to be configured',
        ),
        (replace(SETTINGS, expected_audience=(), expected_issuer=None), "expected.audience"),
        (replace(SETTINGS, allowed_urls=()), "The URL cannot be accessed due to restrictions"),
        (
            replace(SETTINGS, allowed_urls=("file:///key",)),
            "The URL cannot be accessed due to restrictions",
        ),
        (replace(SETTINGS, jwks_url="ftp://x"), r"contains an invalid protocol \(ftp\)"),
        (SETTINGS, r"contains a file \(/keys\) that doesn't exist"),
    ],
)
def test_settings_that_verify_nothing_are_refused(settings: OAuthSettings, message: str) -> None:
    with pytest.raises(InvalidOAuthSettingsError, match=message):
        settings.file_at(settings.checked_url())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": 1}'])
def test_a_file_without_a_key_set_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(InvalidOAuthSettingsError, match="cannot be read as a key set"):
        validator(path)
