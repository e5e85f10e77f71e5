"""Kafka's tools and ours that log in by SASL, with right and wrong logins, and at false servers."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from tests.interop.fake_server import FakeServer
from tests.interop.quorum_tools import assert_alike
from tests.support.kafka.java import ToolRunner
from tests.support.node import STANDALONE, Node
from tests.support.node_process import write_properties
from tests.support.sasl_clients import PLAIN_MODULE, SCRAM_CONFIG, SCRAM_MODULE, plain_config
from tests.support.tls_nodes import Keys, Listeners

from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kvorum.wire.messages.sasl_handshake import SaslHandshakeResponse
from kvorum.wire.primitives import Message

pytestmark = pytest.mark.slow

PASSWORD: Final = "secret of alice"
SERVERS: Final[Mapping[str, tuple[str, str]]] = {
    "other nonce": ("r=other,s=AAAA,i=4096", ""),
    "few iterations": ("r={},s=AAAA,i=4095", ""),
    "no iterations": ("r={},s=AAAA,i=0", ""),
    "other message": ("v=AAAA", ""),
    "wrong signature": ("r={},s=AAAA,i=4096", "v=AAAA"),
    "error": ("r={},s=AAAA,i=4096", "e=other-error"),
}
"""The answers of servers that do not know the password; the client's nonce is filled in."""
TOOLS: Final = {"kafka-cluster": "cluster-id", "kafka-metadata-quorum": "describe --status"}
SCRAM: Final = "SCRAM-SHA-256"


def login(
    protocol: str,
    mechanism: str,
    *,
    password: str = PASSWORD,
    user: str = "alice",
    text: str | None = None,
) -> Mapping[str, str]:
    """Return the settings of a client; `text` is in place of its login module."""
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    written = f'{module} required username="{user}" password="{password}";'
    return {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": written if text is None else text,
    }


RIGHT: Final = {
    "plain": ("OPEN", login("SASL_PLAINTEXT", "PLAIN")),
    "scram": ("OPEN", login("SASL_PLAINTEXT", SCRAM)),
    "plain by TLS": ("TLS", login("SASL_SSL", "PLAIN")),
    "scram by TLS": ("TLS", login("sasl_ssl", SCRAM)),
}
WRONG: Final = {
    "plain password": ("OPEN", login("SASL_PLAINTEXT", "PLAIN", password="guess")),
    "scram password": ("OPEN", login("SASL_PLAINTEXT", SCRAM, password="guess")),
    "scram user": ("TLS", login("SASL_SSL", SCRAM, user="carol")),
    "empty password": ("OPEN", login("SASL_PLAINTEXT", "PLAIN", password="")),
    "not enabled": ("OPEN", login("SASL_PLAINTEXT", "SCRAM-SHA-512")),
    "listener in plain text": ("PLAINTEXT", login("SASL_PLAINTEXT", "PLAIN")),
    "module not terminated": ("OPEN", login("SASL_PLAINTEXT", "PLAIN", text=PLAIN_MODULE)),
    "unknown module": ("OPEN", login("SASL_PLAINTEXT", "PLAIN", text="org.foo.Bar required;")),
    "no module": ("OPEN", {"security.protocol": "SASL_PLAINTEXT"}),
}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def listeners() -> Listeners:
    return Listeners(("OPEN", "TLS"), {"OPEN": "SASL_PLAINTEXT", "TLS": "SASL_SSL"})


@pytest.fixture(scope="module")
def node(
    keys: Keys, listeners: Listeners, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    by_listener = {
        "sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
        "plain.sasl.jaas.config": plain_config(alice=PASSWORD),
        "scram-sha-256.sasl.jaas.config": SCRAM_CONFIG,
    }
    settings = {
        **keys.settings(),
        **listeners.settings(),
        **{f"listener.name.open.{key}": value for key, value in by_listener.items()},
        **{f"listener.name.tls.{key}": value for key, value in by_listener.items()},
    }
    user = ("--add-scram", f"{SCRAM}=[name=alice,password={PASSWORD}]")
    folder = tmp_path_factory.mktemp("node")
    made = Node(folder, settings, ports=listeners.own_ports).format((*STANDALONE, *user))
    with made as running:
        yield running


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("what", [*RIGHT, *WRONG])
def test_tools_end_alike_with_right_and_wrong_logins(
    keys: Keys, listeners: Listeners, kafka_tools: ToolRunner, tmp_path: Path, what: str
) -> None:
    listener, settings = {**RIGHT, **WRONG}[what]
    file = tmp_path / "client.properties"
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(keys.trusted)}
    write_properties(file, {**trusted, "request.timeout.ms": "5000", **settings})
    options = ["--bootstrap-server", f"localhost:{listeners.ports[listener]}"]
    options += ["--command-config", str(file)]
    for tool, command in TOOLS.items():
        words = command.split()
        arguments = [*words, *options] if tool == "kafka-cluster" else [*options, *words]
        assert_alike(tool, arguments, kafka_tools, 1 if what in WRONG else 0, secret=PASSWORD)


def played(first: str, last: str) -> Callable[[Message], Message]:
    """Return what answers the tokens of SCRAM so."""

    def answer(request: Message) -> Message:
        assert isinstance(request, SaslAuthenticateRequest)
        token = request.auth_bytes.decode()
        _, _, nonce = token.partition(",r=")
        said = first.format(f"{nonce}1") if token.startswith("n,,") else last
        return SaslAuthenticateResponse(auth_bytes=said.encode())

    return answer


@pytest.mark.parametrize("what", SERVERS)
def test_tools_refuse_a_server_that_does_not_know_the_password_alike(
    kafka_tools: ToolRunner, tmp_path: Path, what: str
) -> None:
    file = tmp_path / "client.properties"
    write_properties(file, login("SASL_PLAINTEXT", SCRAM))
    server = FakeServer(
        SaslHandshake=lambda _: SaslHandshakeResponse(mechanisms=[SCRAM]),
        SaslAuthenticate=played(*SERVERS[what]),
    )
    try:
        options = ["--bootstrap-server", server.address, "--command-config", str(file)]
        arguments = ["cluster-id", *options]
        said = assert_alike("kafka-cluster", arguments, kafka_tools, 1, secret=PASSWORD)
    finally:
        server.close()
    assert "SaslAuthenticationException" in said
