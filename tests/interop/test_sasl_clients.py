"""The outcomes of clients that authenticate by SASL, at a real node and at ours."""

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from tests.interop.clients.authentications import (
    LET_IN,
    Login,
    by_aiokafka,
    by_kafka_python,
    by_librdkafka,
    by_tool,
)
from tests.interop.clients.login_program import LoginProgram
from tests.interop.listener_pairs import Sides, running_sides
from tests.support.kafka.java import Java, ToolRunner
from tests.support.sasl_clients import SCRAM_CONFIG, plain_config, plain_token
from tests.support.sasl_exchange import answers, frame
from tests.support.tls_nodes import Keys, Listeners
from tests.support.waiting import wait_for

from kvorum.wire.messages.api_versions import ApiVersionsRequest
from kvorum.wire.messages.metadata import MetadataRequest
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kvorum.wire.messages.sasl_handshake import SaslHandshakeRequest

# aiokafka leaves the connection of a refused login to the garbage collector.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

PROTOCOLS: Final = {"OPEN": "SASL_PLAINTEXT", "TLS": "SASL_SSL"}
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD: Final = "secret of alice"
FRAME_BYTES_MAX: Final = 1_000
CREDENTIALS: Final = tuple(
    word
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    for word in ("--add-scram", f"{mechanism}=[name=alice,password={PASSWORD}]")
)
LOGINS: Final = {
    "right": ("alice", PASSWORD),
    "wrong password": ("alice", "guess"),
    "unknown user": ("carol", PASSWORD),
}
FIRST_MESSAGES: Final = (
    *("", "n,,n=carol,r=abc", "y,,n=alice,r=abc", "n,a=,n=alice,r=abc", "n,,n=alice,r="),
    *("n,a=bob,n=alice,r=abc", "n,,n=alice,r=abc,", "n,,n=alice,r=abc,tokenauth=true"),
    *("n,,n=\N{LATIN SMALL LETTER E WITH ACUTE},r=abc", "n,,n=alice,r=abc\n"),
)
"""First messages of SCRAM upon which a client is refused."""
REFUSED: Final = (
    "Error while executing topic command : Authentication failed during authentication due to "
    "invalid credentials with SASL mechanism SCRAM-SHA-256"
)


def settings(keys: Keys, listeners: Listeners) -> dict[str, str]:
    by_listener = {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "plain.sasl.jaas.config": plain_config(alice=PASSWORD, bob="of bob"),
        "scram-sha-256.sasl.jaas.config": SCRAM_CONFIG,
        "scram-sha-512.sasl.jaas.config": SCRAM_CONFIG,
        "sasl.server.max.receive.size": str(FRAME_BYTES_MAX),
    }
    return {
        **keys.settings(),
        **listeners.settings(),
        **{
            f"listener.name.{name.lower()}.{key}": value
            for name, (key, value) in product(PROTOCOLS, by_listener.items())
        },
    }


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def sides(
    keys: Keys, java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sides]:
    folder = tmp_path_factory.mktemp("nodes")
    names = tuple(PROTOCOLS)
    found = Sides(Listeners(names, PROTOCOLS), Listeners(names, PROTOCOLS))
    with running_sides(
        found,
        folder,
        partial(settings, keys),
        java=java,
        tools=kafka_tools,
        format_options=CREDENTIALS,
    ):
        yield found


@pytest.mark.parametrize("what", LOGINS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", PROTOCOLS)
async def test_clients_are_let_in_or_hear_why_not_as_by_kafka(
    sides: Sides,
    keys: Keys,
    kafka_tools: ToolRunner,
    tmp_path: Path,
    listener: str,
    mechanism: str,
    what: str,
) -> None:
    login = Login(PROTOCOLS[listener], mechanism, *LOGINS[what], trusted=keys.trusted)
    ports = [listeners.ports[listener] for listeners in sides]
    theirs, ours = [
        (
            await asyncio.to_thread(by_librdkafka, port, login),
            await asyncio.to_thread(by_tool, port, login, kafka_tools, tmp_path),
            await asyncio.to_thread(by_kafka_python, port, login),
            await by_aiokafka(port, login),
        )
        for port in ports
    ]
    assert ours == theirs
    is_let_in = what == "right"
    assert [each == LET_IN for each in theirs] == [is_let_in] * len(theirs)


@pytest.mark.parametrize("what", LOGINS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", PROTOCOLS)
def test_clients_in_other_languages_are_let_in_or_hear_why_not_as_by_kafka(
    sides: Sides, keys: Keys, login_program: LoginProgram, listener: str, mechanism: str, what: str
) -> None:
    user, password = LOGINS[what]
    trusted = str(keys.trusted) if listener == "TLS" else None
    theirs, ours = (
        login_program.outcome(
            each.ports[listener],
            trusted=trusted,
            mechanism=mechanism,
            username=user,
            password=password,
        )
        for each in sides
    )
    assert ours == theirs
    assert (theirs == LET_IN) == (what == "right")


@pytest.mark.parametrize("side", Sides._fields)
def test_a_changed_credential_counts_at_the_next_login_as_by_kafka(
    sides: Sides, keys: Keys, kafka_tools: ToolRunner, tmp_path: Path, side: str
) -> None:
    ports = sides._asdict()[side].ports

    def alter(change: str, value: str) -> None:
        address = ("--bootstrap-server", f"127.0.0.1:{ports['PLAINTEXT']}")
        user = ("--entity-type", "users", "--entity-name", "dave")
        kafka_tools.printed("kafka-configs", *address, *user, "--alter", change, value)

    def outcome(password: str) -> str:
        login = Login("SASL_PLAINTEXT", "SCRAM-SHA-256", "dave", password, keys.trusted)
        return by_tool(ports["OPEN"], login, kafka_tools, tmp_path)

    alter("--add-config", "SCRAM-SHA-256=[password=first]")
    wait_for(lambda: outcome("first") == LET_IN or None, "the user is known")
    alter("--add-config", "SCRAM-SHA-256=[password=second]")
    wait_for(lambda: outcome("second") == LET_IN or None, "the new password counts")
    assert outcome("first") == REFUSED
    alter("--delete-config", "SCRAM-SHA-256")
    wait_for(lambda: outcome("second") == REFUSED or None, "the user is gone")


def token(
    user: str = "alice", password: str = PASSWORD, other: str = "", version: int = 2
) -> bytes:
    return frame(SaslAuthenticateRequest(plain_token(user, password, other)), version)


FILLING: Final = "x" * (FRAME_BYTES_MAX - 1 - len(token(password="")))
"""The longest password; the length of its token takes a byte more than that without one."""
HANDSHAKE: Final = frame(SaslHandshakeRequest("PLAIN"), 1)
HANDSHAKE_V0: Final = frame(SaslHandshakeRequest("PLAIN"), 0)
METADATA: Final = frame(MetadataRequest(topics=[]), 9)
VERSIONS: Final = frame(ApiVersionsRequest("test", "1"), 3)
BAD_VERSIONS: Final = frame(ApiVersionsRequest("-", ""), 3)
OTHER_NODE: Final = frame(ApiVersionsRequest("test", "1", "other", 7), 5)
UNKNOWN_VERSIONS: Final = VERSIONS[:3] + b"\x63" + VERSIONS[4:]
EXCHANGES: Final[Mapping[str, tuple[bytes, ...]]] = {
    "authenticated": (HANDSHAKE, token(), HANDSHAKE, token(), HANDSHAKE),
    **{f"token version {version}": (HANDSHAKE, token(version=version)) for version in (0, 1, 2)},
    "token version 3": (HANDSHAKE, token()[:3] + b"\x03" + token()[4:]),
    "bare token": (HANDSHAKE_V0, plain_token("alice", PASSWORD), HANDSHAKE),
    "bare wrong token": (HANDSHAKE_V0, plain_token("alice", "guess")),
    "request for a bare token": (HANDSHAKE_V0, token()),
    "wrong password": (HANDSHAKE, token(password="guess"), HANDSHAKE),
    "no password": (HANDSHAKE, token(password="")),
    "no user": (HANDSHAKE, token(user="")),
    "other user": (HANDSHAKE, token(other="bob")),
    "own user": (HANDSHAKE, token(other="alice")),
    "two parts": (HANDSHAKE, frame(SaslAuthenticateRequest(b"alice\0x"), 2)),
    "five parts": (HANDSHAKE, frame(SaslAuthenticateRequest(b"\0alice\0x\0\0"), 2)),
    "no bytes": (b"",),
    "bare first": (b"\x60\x82\x02\x46",),
    "metadata first": (METADATA,),
    "token first": (token(),),
    "unknown key": (b"\x12\x67\x00\x00\x00\x00\x00\x01\xff\xff",),
    "handshake version 2": (HANDSHAKE[:3] + b"\x02" + HANDSHAKE[4:],),
    "handshake with null": (HANDSHAKE[:11] + b"\xff\xff",),
    "handshake with more": (HANDSHAKE + b"more", token()),
    "mechanism not enabled": (frame(SaslHandshakeRequest("GSSAPI"), 1), HANDSHAKE),
    "mechanism in lower case": (frame(SaslHandshakeRequest("plain"), 1),),
    "handshake twice": (HANDSHAKE, HANDSHAKE),
    "metadata for a token": (HANDSHAKE, METADATA),
    "versions for a token": (HANDSHAKE, VERSIONS),
    "bad versions": (BAD_VERSIONS, BAD_VERSIONS, HANDSHAKE, token()),
    "unknown versions": (UNKNOWN_VERSIONS, HANDSHAKE, token()),
    "longest token": (HANDSHAKE, token(password=FILLING)),
    "too long": (HANDSHAKE, token(password=f"{FILLING}x")),
}
WITH_VERSIONS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "then a token": (VERSIONS, HANDSHAKE, token()),
    "of another node": (OTHER_NODE, HANDSHAKE, token()),
    "twice": (VERSIONS, VERSIONS),
    "then metadata": (VERSIONS, METADATA),
}
"""Exchanges whose first response has the versions of a node, which differ."""


@pytest.mark.parametrize("what", EXCHANGES)
def test_each_frame_is_answered_as_by_kafka(sides: Sides, what: str) -> None:
    theirs, ours = (answers(each.ports["OPEN"], EXCHANGES[what]) for each in sides)
    assert ours == theirs


@pytest.mark.parametrize("mechanism", [each for each in MECHANISMS if each != "PLAIN"])
@pytest.mark.parametrize("version", [0, 1])
def test_each_wrong_first_message_of_scram_is_refused_as_by_kafka(
    sides: Sides, mechanism: str, version: int
) -> None:
    shake = frame(SaslHandshakeRequest(mechanism), version)
    for message in map(str.encode, FIRST_MESSAGES):
        sent = message if version == 0 else frame(SaslAuthenticateRequest(message), 2)
        theirs, ours = (answers(each.ports["OPEN"], (shake, sent, sent)) for each in sides)
        assert (message, ours) == (message, theirs)
        assert ours[-1] is None


@pytest.mark.parametrize("what", WITH_VERSIONS)
def test_each_frame_after_api_versions_is_answered_as_by_kafka(sides: Sides, what: str) -> None:
    theirs, ours = (answers(each.ports["OPEN"], WITH_VERSIONS[what]) for each in sides)
    assert ours[1:] == theirs[1:]
    # The correlation id and the error code.
    assert [each and each[:6] for each in ours[:1]] == [each and each[:6] for each in theirs[:1]]
