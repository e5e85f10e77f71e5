"""OAUTHBEARER at a real node and at ours: the answer to each message, and the end."""

import asyncio
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from tests.interop.clients.authentications import (
    LET_IN,
    OauthCallback,
    aiokafka_token,
    kafka_python_token,
    outcome_of_aiokafka,
    outcome_of_kafka_python,
    outcome_of_librdkafka,
    outcome_of_tool,
)
from tests.interop.clients.login_program import LoginProgram
from tests.interop.listener_pairs import Sides, running_sides
from tests.support.kafka.java import Java, ToolRunner
from tests.support.oauth_tokens import (
    HOUR_S,
    OAUTH_CONFIG,
    OAUTH_MODULE,
    bearer_outcome,
    claims,
    encoded,
    message,
    unsecured,
    unsecured_of,
)
from tests.support.raw_client import RawClient
from tests.support.sasl_clients import send_token, shake_hands
from tests.support.sasl_exchange import answers, frame
from tests.support.tls_nodes import Keys, Listeners
from tests.support.waiting import wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kvorum.wire.messages.sasl_handshake import SaslHandshakeRequest

# aiokafka leaves the connection of a refused login to the garbage collector.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

PROTOCOLS: Final = {"OPEN": "SASL_PLAINTEXT", "SCOPED": "SASL_PLAINTEXT", "TLS": "SASL_SSL"}
GIVEN_UP: Final = b"\x01"
SHORT_S: Final = 2
REPEAT_INTERVAL_S: Final = 1.1
"""The time after which a client may authenticate again once more."""
SHAKE_V0: Final = frame(SaslHandshakeRequest("OAUTHBEARER"), 0)
SCOPED: Final = {
    # Kafka's listener logs in itself where there is an option.
    "unsecuredLoginStringClaim_sub": "node",
    "unsecuredValidatorPrincipalClaimName": "name",
    "unsecuredValidatorScopeClaimName": "roles",
    "unsecuredValidatorRequiredScope": "a b",
    "unsecuredValidatorAllowableClockSkewMs": "600000",
}
BY_SCOPE: Final[Mapping[str, dict[str, object]]] = {
    "right": {"name": "alice", "roles": ["b", "a", "c"]},
    "lacking": {"name": "alice", "roles": ["a"]},
    "no scope": {"name": "alice"},
    "scope as a text": {"name": "alice", "roles": "a b"},
    "no user": {"roles": ["a", "b"]},
    "expired within the skew": {"name": "alice", "roles": ["a", "b"], "exp": -60},
    "expired": {"name": "alice", "roles": ["a", "b"], "exp": -660},
    "issued within the skew": {"name": "alice", "roles": ["a", "b"], "iat": 60},
    "issued later": {"name": "alice", "roles": ["a", "b"], "iat": 660},
}
"""Claims for the listener SCOPED; times are seconds from now."""


def of(body: str, header: str = '{"alg":"none"}') -> tuple[bytes, ...]:
    return (message(unsecured_of(body, header)), GIVEN_UP)


NOW: Final = claims()
EXP: Final = claims()["exp"]
BODY: Final = json.dumps(claims())
RIGHT: Final = message(unsecured())
WRONG: Final = message(unsecured(exp=1))
MESSAGES: Final[Mapping[str, tuple[bytes, ...]]] = {
    "right": (RIGHT,),
    "right twice": (RIGHT, RIGHT),
    "wrong": (WRONG, GIVEN_UP),
    "wrong, then right": (WRONG, RIGHT),
    "wrong, then nothing": (WRONG, b""),
    "wrong, then wrong": (WRONG, WRONG, GIVEN_UP),
    "given up at first": (GIVEN_UP,),
    "no bytes": (b"",),
    "no token": (b"n,,\x01\x01",),
    "channel binding": (b"y" + RIGHT[1:],),
    "more after the end": (RIGHT + b"\x01",),
    "own user": (message(unsecured(), authorization_id="alice"),),
    "other user": (message(unsecured(), authorization_id="bob"),),
    "escaped user": (message(unsecured(sub="a,b"), authorization_id="a=2Cb"),),
    "extensions": (message(unsecured(), more="traceId=1 2\x01logicalCluster=a=b\x01"),),
    "extension twice": (message(unsecured(), more="a=1\x01a=2\x01"),),
    "auth twice": (message(unsecured(), more="auth=Bearer x\x01"),),
    "extension with a digit": (message(unsecured(), more="k1=v\x01"),),
    "empty extension": (message(unsecured(), more="k=\x01"),),
    "extension of other letters": (message(unsecured(), more="k=\N{EURO SIGN}\x01"),),
    "another scheme": (message("", auth=f"Basic {unsecured()}"),),
    "scheme in upper case": (message("", auth=f"BEARER  {unsecured()}"),),
    "two tokens": (message("", auth=f"Bearer {unsecured()} x"),),
    "upper case of auth": (RIGHT.replace(b"auth", b"Auth"),),
    "blank around the user": (message(unsecured(sub=" alice ")), GIVEN_UP),
    "blank user": (message(unsecured(sub=" ")), GIVEN_UP),
    "no user": (message(unsecured(sub=None)), GIVEN_UP),
    "user of null": of(f'{{"sub": null, "exp": {EXP}}}'),
    "user that is true": of(f'{{"sub": true, "exp": {EXP}}}'),
    "user of a number": of(f'{{"sub": 7, "exp": {EXP}}}'),
    "user of a list": of(f'{{"sub": ["alice"], "exp": {EXP}}}'),
    "user of an object": of(f'{{"sub": {{}}, "exp": {EXP}}}'),
    "no expiry": (message(unsecured(exp=None)), GIVEN_UP),
    "expiry of a text": (message(unsecured(exp="1")), GIVEN_UP),
    "expiry of null": of('{"sub": "alice", "exp": null}'),
    "expiry of a fraction": of(f'{{"sub": "alice", "exp": {EXP}.5}}'),
    "expiry of an exponent": of('{"sub": "alice", "exp": 9e9}'),
    "largest expiry": of('{"sub": "alice", "exp": 9223372036854775807}'),
    "far expiry": of('{"sub": "alice", "exp": 99999999999999999999999}'),
    "issued later": (message(unsecured(iat=int(str(EXP)) - 1)), GIVEN_UP),
    "issued with a fraction": (message(unsecured(iat=1.5)), GIVEN_UP),
    "issued as a text": (message(unsecured(iat="x")), GIVEN_UP),
    "not issued": (message(unsecured(iat=None)), GIVEN_UP),
    "scope of a number": (message(unsecured(scope=1)), GIVEN_UP),
    "scope of a list": (message(unsecured(scope=["a", "", 1, None])), GIVEN_UP),
    "scope of an object": (message(unsecured(scope={"a": 1})), GIVEN_UP),
    "signature": (message(unsecured() + "AAAA"), GIVEN_UP),
    "another algorithm": of(BODY, '{"alg":"RS256"}'),
    "upper case of none": of(BODY, '{"alg":"None"}'),
    "algorithm of a list": of(BODY, '{"alg":["none"]}'),
    "algorithm of null": of(BODY, '{"alg":null}'),
    "no algorithm": of(BODY, "{}"),
    "header that is a list": of(BODY, "[]"),
    "empty header": of(BODY, ""),
    "header without JSON": of(BODY, "{"),
    "two parts": (message(unsecured().rstrip(".")), GIVEN_UP),
    "four parts": (message(unsecured() + "a."), GIVEN_UP),
    "an empty part": (message(f"{encoded(b'{}')}.."), GIVEN_UP),
    "dots alone": (message("a.b.c.d"), GIVEN_UP),
    "padding": (message(unsecured() + "="), GIVEN_UP),
    "no base64": (message("a+b.AA."), GIVEN_UP),
    "a letter of base64": (message("AAAAA.AA."), GIVEN_UP),
    "letters of URLs": of(json.dumps({**NOW, "x": "\N{INVERTED QUESTION MARK}>?~\x7f"})),
    "more after the claims": of(f"{BODY} more"),
    "claims that are a list": of("[]"),
    "no claims": (message(f".{encoded(b'{}')}."), GIVEN_UP),
    "no number": of(f'{{"sub": "alice", "exp": {EXP}, "x": NaN}}'),
    "twice the user": of(f'{{"sub": "alice", "sub": "bob", "exp": {EXP}}}'),
}


def settings(keys: Keys, listeners: Listeners) -> dict[str, str]:
    options = " ".join(f'{name}="{value}"' for name, value in SCOPED.items())
    scoped = f"{OAUTH_MODULE} required {options};"
    modules = {"open": OAUTH_CONFIG, "scoped": scoped, "tls": OAUTH_CONFIG}
    return {
        **keys.settings(),
        **listeners.settings(),
        **{
            f"listener.name.{name}.oauthbearer.sasl.jaas.config": module
            for name, module in modules.items()
        },
        **{f"listener.name.{name}.sasl.enabled.mechanisms": "OAUTHBEARER" for name in modules},
    }


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def sides(
    keys: Keys, java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sides]:
    names = tuple(PROTOCOLS)
    found = Sides(Listeners(names, PROTOCOLS), Listeners(names, PROTOCOLS))
    folder = tmp_path_factory.mktemp("nodes")
    with running_sides(found, folder, partial(settings, keys), java=java, tools=kafka_tools):
        yield found


@pytest.mark.parametrize("what", MESSAGES)
def test_each_message_is_answered_as_by_kafka(sides: Sides, what: str) -> None:
    theirs, ours = (bearer_outcome(each.ports["OPEN"], MESSAGES[what]) for each in sides)
    assert ours == theirs


@pytest.mark.parametrize("what", ["right", "wrong", "no bytes", "wrong, then right", "other user"])
def test_bare_messages_are_answered_as_by_kafka(sides: Sides, what: str) -> None:
    frames = (SHAKE_V0, *MESSAGES[what])
    theirs, ours = (answers(each.ports["OPEN"], frames) for each in sides)
    assert ours == theirs


@pytest.mark.parametrize("what", BY_SCOPE)
def test_the_options_of_the_login_module_count_as_by_kafka(sides: Sides, what: str) -> None:
    changes = dict(BY_SCOPE[what])
    now_s = int(str(claims()["iat"]))
    times: dict[str, object] = {
        key: now_s + int(str(changes[key])) for key in ("exp", "iat") if key in changes
    }
    if "exp" in times:
        times["iat"] = now_s - HOUR_S
    whole = {**changes, **times}
    messages = (message(unsecured(**whole)), GIVEN_UP)
    theirs, ours = (bearer_outcome(each.ports["SCOPED"], messages) for each in sides)
    assert ours == theirs


def options(**claims_of_login: str) -> str:
    """Return the login module of a Java client that writes its token itself."""
    written = " ".join(
        f'unsecuredLoginStringClaim_{name}="{value}"' for name, value in claims_of_login.items()
    )
    return f"{OAUTH_MODULE} required {written};"


@pytest.mark.parametrize("listener", PROTOCOLS)
def test_kafkas_tools_are_let_in_or_hear_why_not_as_by_kafka(
    sides: Sides, keys: Keys, kafka_tools: ToolRunner, tmp_path: Path, listener: str
) -> None:
    settings_of_client = {
        "security.protocol": PROTOCOLS[listener],
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": options(sub="alice"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(keys.trusted),
    }
    theirs, ours = (
        outcome_of_tool(each.ports[listener], settings_of_client, kafka_tools, tmp_path)
        for each in sides
    )
    assert ours == theirs
    assert (theirs == LET_IN) == (listener != "SCOPED")


@pytest.mark.parametrize("listener", PROTOCOLS)
async def test_clients_are_let_in_or_hear_why_not_as_by_kafka(
    sides: Sides, keys: Keys, listener: str
) -> None:
    protocol = PROTOCOLS[listener]
    token = unsecured()
    of_librdkafka: dict[str, str | bool | OauthCallback] = {
        "security.protocol": protocol,
        "ssl.ca.location": str(keys.trusted),
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": True,
        "sasl.oauthbearer.config": "principal=alice",
    }
    of_kafka_python = {
        "security_protocol": protocol,
        "ssl_cafile": str(keys.trusted),
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": kafka_python_token(token),
    }
    of_aiokafka = {
        "security_protocol": protocol,
        "ssl_context": ssl.create_default_context(cafile=str(keys.trusted)),
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": aiokafka_token(token),
    }
    ports = [listeners.ports[listener] for listeners in sides]
    theirs, ours = [
        (
            await asyncio.to_thread(outcome_of_librdkafka, port, of_librdkafka),
            await asyncio.to_thread(outcome_of_kafka_python, port, of_kafka_python),
            await outcome_of_aiokafka(port, of_aiokafka),
        )
        for port in ports
    ]
    assert ours == theirs
    # aiokafka takes the refusal of a token for an answer without brokers, and starts.
    assert [each == LET_IN for each in theirs] == [listener != "SCOPED"] * 2 + [True]


@pytest.mark.parametrize("listener", PROTOCOLS)
def test_clients_in_other_languages_are_let_in_or_hear_why_not_as_by_kafka(
    sides: Sides, keys: Keys, login_program: LoginProgram, listener: str
) -> None:
    trusted = str(keys.trusted) if PROTOCOLS[listener] == "SASL_SSL" else None
    theirs, ours = (
        login_program.outcome(
            each.ports[listener], trusted=trusted, mechanism="OAUTHBEARER", token=unsecured()
        )
        for each in sides
    )
    assert ours == theirs
    assert (theirs == LET_IN) == (listener != "SCOPED")


def wait_until(moment_s: float) -> None:
    wait_for(lambda: time.monotonic() > moment_s or None, "the moment has come")


def log_in(client: RawClient, token: str) -> tuple[int, str | None, bool]:
    """Return the code, the text, and whether the session has an end."""
    assert shake_hands(client, "OAUTHBEARER").error_code == ErrorCode.NONE
    answer = send_token(client, message(token))
    return answer.error_code, answer.error_message, answer.session_lifetime_ms > 0


def renewed(port: int) -> list[object]:
    """Come with a token that expires, with another one after its end, and with another user's."""
    with RawClient(f"127.0.0.1:{port}") as client:
        found: list[object] = [log_in(client, unsecured(exp=int(time.time()) + SHORT_S))]
        wait_until(time.monotonic() + SHORT_S)
        found.append(log_in(client, unsecured()))
        found.append(send_token(client, b"").error_code)
        wait_until(time.monotonic() + REPEAT_INTERVAL_S)
        found += [log_in(client, unsecured(sub="bob")), client.is_closed()]
    return found


def expired(port: int) -> list[object]:
    """Come with a token that expires, and ask for something after its end."""
    with RawClient(f"127.0.0.1:{port}") as client:
        found: list[object] = [log_in(client, unsecured(exp=int(time.time()) + SHORT_S))]
        wait_until(time.monotonic() + SHORT_S)
        client.send(SaslAuthenticateRequest(b""), 2)
        return [*found, client.is_closed()]


@pytest.mark.parametrize("script", [renewed, expired])
def test_a_session_ends_with_its_token_as_at_kafka(
    sides: Sides, script: Callable[[int], list[object]]
) -> None:
    theirs, ours = (script(each.ports["OPEN"]) for each in sides)
    assert ours == theirs
