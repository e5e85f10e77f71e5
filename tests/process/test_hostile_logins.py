"""Crowds that do not want to log in: the node's memory is bounded, and all others are served."""

import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from tests.process.bystander import Bystander, Watch
from tests.support.certificates import NODE_NAME
from tests.support.fixtures import Report
from tests.support.node import Node
from tests.support.node_process import NodeProcess
from tests.support.raw_client import sized_frame
from tests.support.resources import Memory, wait_until_quiet
from tests.support.sasl_clients import (
    AUTHENTICATE_VERSION,
    HANDSHAKE_VERSION,
    SCRAM_CONFIG,
    log_in,
    plain_config,
    plain_token,
)
from tests.support.tls_nodes import Keys, Listeners, TlsClient
from tests.support.waiting import PATIENCE_S

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kvorum.wire.messages.sasl_handshake import SaslHandshakeRequest

pytestmark = pytest.mark.slow

MIB: Final = 2**20
TLS: Final = "TLS"
LOGIN: Final = "LOGIN"
TLS_LOGIN: Final = "TLSLOGIN"
OPEN: Final = "PLAINTEXT"
PASSWORD: Final = "s3cret-of-alice"
GUESS: Final = "guess-of-a-stranger"
MECHANISMS: Final = "PLAIN,SCRAM-SHA-256"
TOKEN_BYTES_MAX: Final = 512 * 1024
SCRAM_FIRST: Final = b"n,,n=nobody,r=" + b"x" * 24
ANNOUNCED: Final = (100 * MIB).to_bytes(4, "big")
CUT_BYTES: Final = 100
SLOW_ROUNDS: Final = 4
FEW: Final = 20
THOUSANDS: Final = 1_000
"""Of each kind; there are eleven."""
BYTES_EACH_MAX: Final = 24 * 1024
"""The mean: most is the state of a handshake, which OpenSSL keeps."""
GROWTH_OF_ITSELF: Final = 24 * MIB
MORE_MAX: Final = 24 * MIB
"""The growth by a second crowd: what the first one had is free by then."""
LINES_MAX: Final = 200


def hello() -> bytes:
    """Return the first bytes of a client that speaks TLS."""
    sent = ssl.MemoryBIO()
    context = ssl.create_default_context()
    client = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=NODE_NAME)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


def handshake(mechanism: str) -> bytes:
    return sized_frame(SaslHandshakeRequest(mechanism), HANDSHAKE_VERSION)


def authenticate(token: bytes) -> bytes:
    return sized_frame(SaslAuthenticateRequest(token), AUTHENTICATE_VERSION)


HELLO: Final = hello()
PLAIN_FRAME: Final = sized_frame(ApiVersionsRequest("hostile", "1"), 4)
LARGEST_TOKEN: Final = authenticate(bytes(TOKEN_BYTES_MAX - CUT_BYTES))
KINDS: Final[Mapping[str, tuple[str, bytes]]] = MappingProxyType(
    {
        "half of a TLS handshake": (TLS, HELLO[: len(HELLO) // 2]),
        "a TLS handshake without its end": (TLS_LOGIN, HELLO),
        "plain bytes on TLS": (TLS, PLAIN_FRAME),
        "TLS on plain bytes": (OPEN, HELLO),
        "TLS on plain bytes of SASL": (LOGIN, HELLO),
        "a frame of 100 MiB announced": (LOGIN, ANNOUNCED),
        "a token above the limit": (LOGIN, handshake("PLAIN") + authenticate(bytes(MIB))[:4]),
        "a token that does not end": (LOGIN, handshake("PLAIN") + LARGEST_TOKEN[:CUT_BYTES]),
        "a wrong password": (
            LOGIN,
            handshake("PLAIN") + authenticate(plain_token("alice", GUESS)),
        ),
        "an exchange of SCRAM without its end": (
            LOGIN,
            handshake("SCRAM-SHA-256") + authenticate(SCRAM_FIRST),
        ),
        "half of a handshake of SASL": (LOGIN, handshake("PLAIN")[:-2]),
    }
)
"""The listener of each kind, and its bytes."""


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def listeners() -> Listeners:
    return Listeners((TLS, LOGIN, TLS_LOGIN), {LOGIN: "SASL_PLAINTEXT", TLS_LOGIN: "SASL_SSL"})


def settings_of_logins() -> Iterator[tuple[str, str]]:
    for name in (LOGIN.lower(), TLS_LOGIN.lower()):
        prefix = f"listener.name.{name}"
        yield f"{prefix}.sasl.enabled.mechanisms", MECHANISMS
        yield f"{prefix}.plain.sasl.jaas.config", plain_config(alice=PASSWORD)
        yield f"{prefix}.scram-sha-256.sasl.jaas.config", SCRAM_CONFIG


@pytest.fixture
def node(keys: Keys, listeners: Listeners, tmp_path: Path) -> Node:
    settings = {**keys.settings(), **listeners.settings(), **dict(settings_of_logins())}
    return Node(tmp_path / "node", settings, ports=listeners.own_ports).format()


def crowd(listeners: Listeners, count: int, opened: ExitStack) -> Iterator[socket.socket]:
    """Yield connections of every kind, which have sent their bytes and stay."""
    for _ in range(count):
        for listener, data in KINDS.values():
            address = ("127.0.0.1", listeners.ports[listener])
            one = opened.enter_context(socket.create_connection(address, timeout=PATIENCE_S))
            one.sendall(data)
            yield one


def crowds_that_log_nobody_in(
    listeners: Listeners, count: int, log_in_meanwhile: Callable[[], None]
) -> None:
    with ExitStack() as opened:
        for _ in crowd(listeners, count, opened):
            pass
        log_in_meanwhile()


@pytest.mark.parametrize("count", [FEW, THOUSANDS], ids=["few", "thousands"])
def test_crowds_of_strangers_take_bounded_memory_and_leave_no_secret_in_the_log(
    report: Report,
    node: Node,
    running: NodeProcess,
    keys: Keys,
    listeners: Listeners,
    count: int,
) -> None:
    def log_in_meanwhile() -> None:
        with TlsClient(listeners.ports[TLS_LOGIN], keys.context()) as client:
            assert log_in(client, "alice", PASSWORD).error_code == ErrorCode.NONE

    log_in_meanwhile()
    total = count * len(KINDS)
    watch = Watch(node.broker, running.pid)
    with watch.bystander:
        crowds_that_log_nobody_in(listeners, count, log_in_meanwhile)
    watch.check(report, total * BYTES_EACH_MAX + GROWTH_OF_ITSELF, f"{total} strangers")
    wait_until_quiet(running.pid)
    memory = Memory(running.pid)
    peak = memory.peak_bytes()
    with Bystander(node.broker, running.pid):
        crowds_that_log_nobody_in(listeners, count, log_in_meanwhile)
    assert memory.peak_bytes() < peak + MORE_MAX
    lines = running.lines()
    assert not [line for line in lines if PASSWORD in line or GUESS in line]
    assert len(lines) < LINES_MAX
    assert running.terminate().exit_code == 0
