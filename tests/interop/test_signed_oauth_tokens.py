"""Signed tokens of OAUTHBEARER at a real node and at ours, verified by the keys in a file."""

import hmac
import json
import os
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from joserfc.jwk import ECKey, OctKey
from tests.interop.clients.authentications import (
    LET_IN,
    OauthCallback,
    outcome_of_librdkafka,
    outcome_of_tool,
)
from tests.interop.listener_pairs import Sides, running_sides
from tests.support.kafka.java import Java, ToolRunner
from tests.support.oauth_tokens import (
    HOUR_S,
    OAUTH_CONFIG,
    bearer_outcome,
    claims,
    encoded,
    message,
    unsecured,
)
from tests.support.tls_nodes import Listeners
from tests.support.token_issuer import AUDIENCE, ISSUER, Issuer, new_rsa_key

pytestmark = pytest.mark.slow

PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
HANDLER: Final = f"{PACKAGE}.OAuthBearerValidatorCallbackHandler"
LOGIN_HANDLER: Final = f"{PACKAGE}.OAuthBearerLoginCallbackHandler"
ALLOWED: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
GIVEN_UP: Final = b"\x01"
LISTENERS: Final[tuple[str, ...]] = ("SIGNED", "ANY")
"""A listener for one audience and issuer, and one for any, by claims of other names."""
PROTOCOLS: Final[dict[str, str]] = dict.fromkeys(LISTENERS, "SASL_PLAINTEXT")
CURVE: Final = ECKey.generate_key("P-256", {"kid": "curve"})
SECRET: Final = OctKey.generate_key(256, {"kid": "secret"})
FIRST: Final = new_rsa_key("first")
OURS: Final = Issuer([FIRST, new_rsa_key("second"), CURVE, SECRET])
LONE_KEYS: Final = {
    "without an id": new_rsa_key(),
    "for encryption": new_rsa_key("encryption"),
    "for signing alone": new_rsa_key("signing"),
    "for another algorithm": new_rsa_key("algorithm"),
}
CHANGES_OF_KEYS: Final[dict[str, dict[str, object]]] = {
    "for encryption": {"use": "enc"},
    "for signing alone": {"key_ops": ["sign"]},
    "for another algorithm": {"alg": "RS512"},
}
STRANGER: Final = Issuer()
NOW_S: Final = int(str(claims()["iat"]))


class KeyFile(NamedTuple):
    """The file with the keys of the issuer, which nodes may read."""

    path: Path

    @property
    def url(self) -> str:
        return self.path.as_uri()

    def write(self, text: str) -> None:
        """Replace the keys, with another time of modification."""
        before_ns = self.path.stat().st_mtime_ns if self.path.exists() else 0
        self.path.write_text(text)
        later_ns = max(time.time_ns(), before_ns + 2_000_000_000)
        os.utime(self.path, ns=(later_ns, later_ns))


def key_set() -> str:
    """Return the keys of the issuer, with those of which a token has only one."""
    whole = json.loads(OURS.key_set())
    for name, key in LONE_KEYS.items():
        own = json.loads(Issuer([key]).key_set())["keys"][0]
        whole["keys"].append({**own, **CHANGES_OF_KEYS.get(name, {})})
    return json.dumps(whole)


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> KeyFile:
    file = KeyFile(tmp_path_factory.mktemp("keys") / "keys.json")
    file.write(key_set())
    return file


@contextmanager
def allowing(url: str) -> Generator[None]:
    """Let Java processes that begin meanwhile read keys or tokens from a URL."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JAVA_TOOL_OPTIONS", f"-D{ALLOWED}={url}")
        yield


def settings(key_file: KeyFile, listeners: Listeners) -> dict[str, str]:
    common = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "oauthbearer.sasl.jaas.config": OAUTH_CONFIG,
        "oauthbearer.sasl.server.callback.handler.class": HANDLER,
        "oauthbearer.sasl.oauthbearer.jwks.endpoint.url": key_file.url,
    }
    own = {
        "signed.sasl.oauthbearer.expected.audience": f"other,{AUDIENCE}",
        "signed.sasl.oauthbearer.expected.issuer": ISSUER,
        "any.sasl.oauthbearer.allow.unverified.audience": "true",
        "any.sasl.oauthbearer.allow.unverified.issuer": "true",
        "any.sasl.oauthbearer.sub.claim.name": "name",
        "any.sasl.oauthbearer.scope.claim.name": "roles",
        "any.sasl.oauthbearer.clock.skew.seconds": "600",
    }
    return {
        **listeners.settings(),
        **{
            f"listener.name.{name.lower()}.{key}": value
            for name, (key, value) in product(LISTENERS, common.items())
        },
        **{f"listener.name.{key}": value for key, value in own.items()},
        "kvorum.sasl.oauthbearer.allowed.urls": key_file.url,
    }


@pytest.fixture(scope="module")
def sides(
    key_file: KeyFile,
    java: Java,
    kafka_tools: ToolRunner,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Sides]:
    found = Sides(Listeners(LISTENERS, PROTOCOLS), Listeners(LISTENERS, PROTOCOLS))
    folder = tmp_path_factory.mktemp("nodes")
    configure = partial(settings, key_file)
    with (
        allowing(key_file.url),
        running_sides(found, folder, configure, java=java, tools=kafka_tools),
    ):
        yield found


def forged() -> str:
    """Return a token whose symmetric signature is by the text of a public key."""
    header = encoded(json.dumps({"alg": "HS256", "kid": "first"}).encode())
    body = encoded(json.dumps(claims(aud=AUDIENCE, iss=ISSUER)).encode())
    key = FIRST.as_pem(private=False)
    signature = hmac.digest(key, f"{header}.{body}".encode(), "sha256")
    return f"{header}.{body}.{encoded(signature)}"


def mixed() -> str:
    """Return a token with the claims of another one."""
    header, _, signature = OURS.token().split(".")
    return ".".join((header, OURS.token(sub="bob").split(".")[1], signature))


def of(body: str) -> str:
    """Return a token with this text for its claims."""
    return OURS.token_of(body)


def with_more(more: str) -> str:
    """Return a token whose claims have more at their end."""
    return of(json.dumps(claims(aud=AUDIENCE, iss=ISSUER))[:-1] + f", {more}}}")


TOKENS: Final[Mapping[str, str]] = {
    "right": OURS.token(),
    "second key": OURS.token(key=OURS.keys[1]),
    "by PS512": OURS.token(header={"alg": "PS512"}),
    "by ES256": OURS.token(key=CURVE, header={"alg": "ES256"}),
    "by HS256": OURS.token(key=SECRET, header={"alg": "HS256"}),
    "no id of a key": OURS.token(header={"kid": None}),
    "no id of a key, by the second": OURS.token(key=OURS.keys[1], header={"kid": None}),
    "unknown key": OURS.token(header={"kid": "third"}),
    "unknown key by one without an id": OURS.token(
        key=LONE_KEYS["without an id"], header={"kid": "fourth"}
    ),
    "key for encryption": OURS.token(key=LONE_KEYS["for encryption"]),
    "key for signing alone": OURS.token(key=LONE_KEYS["for signing alone"]),
    "key for another algorithm": OURS.token(key=LONE_KEYS["for another algorithm"]),
    "by the other key": OURS.token(key=OURS.keys[1], header={"kid": "first"}),
    "of a stranger": STRANGER.token(),
    "of a stranger's second": STRANGER.token(header={"kid": "second"}),
    "forged": forged(),
    "mixed": mixed(),
    "unsecured": unsecured(aud=AUDIENCE, iss=ISSUER),
    "unsecured with a signature": unsecured(aud=AUDIENCE, iss=ISSUER) + "AAAA",
    "more in the header": OURS.token_with({"pi.atm": "4", "typ": 7, "x5c": ["x" * 4_000]}),
    "long": OURS.token(more="x" * 300_000),
    "critical and known": OURS.token_with({"crit": ["b64"], "b64": True}),
    "critical and not there": OURS.token_with({"crit": ["b64"]}),
    "critical and not known": OURS.token_with({"crit": ["pi.atm"], "pi.atm": "4"}),
    "critical that every token has": OURS.token_with({"crit": ["kid"]}),
    "critical that is a number": OURS.token_with({"crit": 5}),
    "critical that is a list of objects": OURS.token_with({"crit": [dict[str, object]()]}),
    "two parts": "a.b",
    "an empty part": "a..b",
    "list of audiences": OURS.token(aud=["x", AUDIENCE]),
    "other audience": OURS.token(aud="other"),
    "another audience": OURS.token(aud="x"),
    "no audience": OURS.token(aud=None),
    "empty audience": OURS.token(aud=[]),
    "audience of a number": OURS.token(aud=7),
    "audience of numbers": OURS.token(aud=[AUDIENCE, 7]),
    "another issuer": OURS.token(iss=f"{ISSUER}/"),
    "no issuer": OURS.token(iss=None),
    "issuer of a number": OURS.token(iss=7),
    "blank around the user": OURS.token(sub=" alice "),
    "blank user": OURS.token(sub=" "),
    "no user": OURS.token(sub=None),
    "user of a number": OURS.token(sub=7),
    "id of a number": OURS.token(jti=7),
    "no expiry": OURS.token(exp=None),
    "expiry of a text": OURS.token(exp=str(NOW_S + HOUR_S)),
    "expiry of a fraction": OURS.token(exp=NOW_S + HOUR_S + 0.5),
    "largest expiry": OURS.token(exp=2**63 - 1),
    "far expiry": OURS.token(exp=2**53),
    "expiry of the largest session": OURS.token(exp=9_223_372_036),
    "no time of issue": OURS.token(iat=None),
    "issued later": OURS.token(iat=NOW_S + 1_800),
    "issued after its end": OURS.token(iat=NOW_S + HOUR_S + 1),
    "not yet valid": OURS.token(nbf=NOW_S + 1_800),
    "valid after its end": OURS.token(nbf=NOW_S + HOUR_S + 1),
    "start of a text": OURS.token(nbf="x"),
    "expired within the skew": OURS.token(iat=NOW_S - HOUR_S, exp=NOW_S - 1),
    "expired": OURS.token(iat=NOW_S - HOUR_S, exp=NOW_S - 1_800),
    "scope": OURS.token(scope="a b"),
    "blank scope": OURS.token(scope=" "),
    "list of scopes": OURS.token(scope=["a", "b"]),
    "scope twice": OURS.token(scope=["a", "a"]),
    "blank in the list": OURS.token(scope=["a", " "]),
    "no scopes": OURS.token(scope=[]),
    "scope of a number": OURS.token(scope=7),
    "a name twice": with_more('"sub": "bob"'),
    "more after the claims": of(json.dumps(claims(aud=AUDIENCE, iss=ISSUER)) + " x"),
    "no JSON": of("{"),
    "a list": of("[]"),
    "empty claims": of("{}"),
}
BY_OTHER_CLAIMS: Final[Mapping[str, str]] = {
    "right": OURS.token(name="alice", aud=None, iss=None),
    "any audience and issuer": OURS.token(name="alice", aud="x", iss="y"),
    "audience of a number": OURS.token(name="alice", aud=7),
    "audience of numbers": OURS.token(name="alice", aud=[7]),
    "no user": OURS.token(),
    "scope twice": OURS.token(name="alice", scope=["a", "a"]),
    "roles twice": OURS.token(name="alice", roles=["a", "a"]),
    "expired within the skew": OURS.token(name="alice", iat=NOW_S - HOUR_S, exp=NOW_S - 100),
    "of a stranger": STRANGER.token(name="alice"),
}


@pytest.mark.parametrize("what", TOKENS)
def test_each_token_is_taken_or_refused_as_by_kafka(sides: Sides, what: str) -> None:
    messages = (message(TOKENS[what]), GIVEN_UP)
    theirs, ours = (bearer_outcome(each.ports["SIGNED"], messages) for each in sides)
    assert ours == theirs


@pytest.mark.parametrize("what", BY_OTHER_CLAIMS)
def test_the_settings_of_a_listener_count_as_by_kafka(sides: Sides, what: str) -> None:
    messages = (message(BY_OTHER_CLAIMS[what]), GIVEN_UP)
    theirs, ours = (bearer_outcome(each.ports["ANY"], messages) for each in sides)
    assert ours == theirs


def test_keys_that_are_replaced_count_as_by_kafka(sides: Sides, key_file: KeyFile) -> None:
    messages = (message(STRANGER.token(header={"kid": "new"})), GIVEN_UP)
    stranger = json.loads(STRANGER.key_set())["keys"][0]
    for text in (json.dumps({"keys": [{**stranger, "kid": "new"}]}), "{", key_set()):
        key_file.write(text)
        theirs, ours = (bearer_outcome(each.ports["SIGNED"], messages) for each in sides)
        assert (text[:40], ours) == (text[:40], theirs)


@pytest.mark.parametrize("issuer", [OURS, STRANGER], ids=["right", "wrong"])
def test_kafkas_tools_are_let_in_or_hear_why_not_as_by_kafka(
    sides: Sides, java: Java, tmp_path: Path, issuer: Issuer
) -> None:
    file = tmp_path / "token"
    file.write_text(issuer.token())
    settings_of_client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": OAUTH_CONFIG,
        "sasl.login.callback.handler.class": LOGIN_HANDLER,
        "sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.FileJwtRetriever",
        "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
    }
    with allowing(file.as_uri()), ToolRunner(java) as tools:
        theirs, ours = (
            outcome_of_tool(each.ports["SIGNED"], settings_of_client, tools, tmp_path)
            for each in sides
        )
    assert ours == theirs
    assert (theirs == LET_IN) == (issuer is OURS)


@pytest.mark.parametrize("issuer", [OURS, STRANGER], ids=["right", "wrong"])
def test_librdkafka_is_let_in_or_hears_why_not_as_by_kafka(sides: Sides, issuer: Issuer) -> None:
    def token(_: str) -> tuple[str, float]:
        return issuer.token(), NOW_S + HOUR_S

    settings_of_client: dict[str, str | bool | OauthCallback] = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": token,
    }
    theirs, ours = (
        outcome_of_librdkafka(each.ports["SIGNED"], settings_of_client) for each in sides
    )
    assert ours == theirs
    assert (theirs == LET_IN) == (issuer is OURS)
