"""Listeners that speak TLS: records, users, slow clients, and those that are not let in."""

import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import pytest
from tests.support.certificates import Authority
from tests.support.metrics_scrape import scrape
from tests.support.node import Node
from tests.support.ports import free_ports
from tests.support.raw_client import CUT_OFF, RawClient, sized_frame
from tests.support.record_requests import FETCH_VERSION, batch, fetch, produce
from tests.support.resources import Memory, wait_until_quiet
from tests.support.tls_nodes import Keys, Listeners, TlsClient
from tests.support.topics import create, wait_until_written
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.metadata.config_definitions import BROKER_CONFIGS, parse_all, read_settings
from kvorum.node.outbound.client_connection import ClientConnection, SslAuthenticationError
from kvorum.security.client_security import ClientSecurity
from kvorum.security.ssl_settings import SslSettings
from kvorum.security.tls_contexts import client_context
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse

pytestmark = pytest.mark.slow

MIB: Final = 2**20
TOPIC: Final = "large"
RECORD_BYTES: Final = 900_000
RECORDS: Final = 20
DEAF_CLIENTS: Final = 20
BYTES_EACH_MAX: Final = 768 * 1024
"""The memory for a client: the requests read ahead, a piece of a file, and the state of TLS."""
IDLE_MS: Final = 1_000
TIMEOUT_MS: Final = int(PATIENCE_S * 1000)
INTERNAL_ERROR: Final = bytes.fromhex("15030300020250")
AUTHENTICATIONS: Final = "kafka_server_socket_server_metrics_{}_authentication_total"
WITHOUT_UVLOOP: Final = """\
import sys
sys.modules["uvloop"] = None
from kvorum.cli import main
sys.exit(main(sys.argv[1:]))
"""
SOFTWARE: Final = ApiVersionsRequest("test", "1")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def listeners() -> Listeners:
    return Listeners(("OPEN", "NEEDS"))


@pytest.fixture(scope="module")
def metrics() -> str:
    (port,) = free_ports(1)
    return f"127.0.0.1:{port}"


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def node(
    request: pytest.FixtureRequest,
    keys: Keys,
    listeners: Listeners,
    metrics: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Node]:
    """A node, once on each of the two event loops that it may run on."""
    settings = {
        **keys.settings(),
        **listeners.settings(),
        "listener.name.needs.ssl.client.auth": "required",
        "listener.name.needs.ssl.principal.mapping.rules": "RULE:^CN=([^,]*),.*$/$1/",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice",
        "connections.max.idle.ms": str(IDLE_MS),
        "connection.failed.authentication.delay.ms": "100",
        "kvorum.metrics.listener": metrics,
    }
    folder = tmp_path_factory.mktemp("node")
    made = Node(folder, settings, ports=listeners.own_ports).format()
    if request.param == "asyncio":
        program = [sys.executable, "-c", WITHOUT_UVLOOP]
        made.process.command = [*program, "server", str(made.properties)]
    with made as running:
        assert create(running.broker, TOPIC) == [ErrorCode.NONE]
        wait_until_written(running.broker, TOPIC, batch(b"first"))
        with RawClient(running.broker) as client:
            for _ in range(RECORDS):
                record = batch(bytes(RECORD_BYTES))
                assert produce(client, TOPIC, record).error_code == ErrorCode.NONE
        yield running


def authentications(metrics: str, result: str, listener: str) -> float:
    page = scrape(metrics)
    return page.value(AUTHENTICATIONS.format(result), listener=listener, networkProcessor="0")


def test_records_out_of_files_come_by_tls_as_in_plain_text(
    node: Node, keys: Keys, listeners: Listeners
) -> None:
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = keys.context()
        context.maximum_version = version
        with (
            RawClient(node.broker) as plain,
            TlsClient(listeners.ports["OPEN"], context) as encrypted,
        ):
            for offset in range(RECORDS + 1):
                expected = fetch(plain, TOPIC, offset).records
                assert expected is not None
                assert fetch(encrypted, TOPIC, offset).records == expected


def test_the_authorizer_decides_about_the_user_of_the_certificate(
    node: Node, keys: Keys, listeners: Listeners
) -> None:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=TOPIC)])
    codes = {}
    for name in ("alice", "bob"):
        context = keys.context(keys.client(name))
        with TlsClient(listeners.ports["NEEDS"], context) as client:
            (topic,) = client.ask(request, MetadataResponse, 9).topics
            codes[name] = topic.error_code
    assert codes == {"alice": ErrorCode.NONE, "bob": ErrorCode.TOPIC_AUTHORIZATION_FAILED}


@pytest.mark.parametrize("what", ["HTTP", "SSH", "zeros", "negative size"])
def test_plain_bytes_are_answered_with_an_alert_and_counted(
    node: Node, listeners: Listeners, metrics: str, what: str
) -> None:
    before = authentications(metrics, "failed", "OPEN")
    with RawClient(f"127.0.0.1:{listeners.ports['OPEN']}") as client:
        client.send_bytes(CUT_OFF[what])
        answer = b"".join(iter(lambda: client.socket.recv(100), b""))
    assert answer == INTERNAL_ERROR
    assert authentications(metrics, "failed", "OPEN") == before + 1
    assert "Failed authentication with /127.0.0.1 (SSL handshake failed)" in node.log_text


@pytest.mark.usefixtures("node")
def test_authentications_and_their_failures_are_counted(
    keys: Keys, listeners: Listeners, metrics: str
) -> None:
    failed = authentications(metrics, "failed", "NEEDS")
    successful = authentications(metrics, "successful", "NEEDS")
    with TlsClient(listeners.ports["NEEDS"], keys.context(keys.client("alice"))) as client:
        client.ask(SOFTWARE, ApiVersionsResponse, 3)
    with suppress(ssl.SSLError), TlsClient(listeners.ports["NEEDS"], keys.context()) as client:
        client.read_frame()
    assert authentications(metrics, "failed", "NEEDS") == failed + 1
    assert authentications(metrics, "successful", "NEEDS") == successful + 1
    assert authentications(metrics, "successful", "PLAINTEXT") == 0


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("sent", [b"", bytes.fromhex("160301")])
def test_a_client_that_does_not_go_on_with_its_handshake_is_idle(
    listeners: Listeners, sent: bytes
) -> None:
    with RawClient(f"127.0.0.1:{listeners.ports['OPEN']}") as client:
        client.send_bytes(sent)
        assert client.is_closed()


@pytest.mark.usefixtures("node")
def test_a_connection_ends_with_a_goodbye(keys: Keys, listeners: Listeners) -> None:
    with TlsClient(listeners.ports["OPEN"], keys.context()) as client:
        client.ask(SOFTWARE, ApiVersionsResponse, 3)
        # The server that goes without one makes this an SSLEOFError.
        client.socket.suppress_ragged_eofs = False  # type: ignore[attr-defined] # of an SSLSocket
        assert client.socket.recv(1) == b""


def test_clients_that_read_nothing_cost_no_memory(
    node: Node, keys: Keys, listeners: Listeners
) -> None:
    wish = FetchRequest.FetchPartition(0, fetch_offset=0, partition_max_bytes=50 * MIB)
    topics = [FetchRequest.FetchTopic(TOPIC, partitions=[wish])]
    request = FetchRequest(min_bytes=1, max_bytes=50 * MIB, topics=topics)
    frames = sized_frame(request, FETCH_VERSION) * 10
    memory = Memory(node.process.pid)
    before = memory.resident_bytes()
    with ExitStack() as opened:
        for _ in range(DEAF_CLIENTS):
            deaf = opened.enter_context(_deaf(listeners.ports["OPEN"], keys.context()))
            deaf.sendall(frames)
        wait_until_quiet(node.process.pid)
        grown = memory.peak_bytes() - before
        with TlsClient(listeners.ports["OPEN"], keys.context()) as client:
            assert fetch(client, TOPIC, 0).error_code == ErrorCode.NONE
    assert grown < DEAF_CLIENTS * BYTES_EACH_MAX


def _deaf(port: int, context: ssl.SSLContext) -> ssl.SSLSocket:
    """Return a connection whose system takes in little."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect(("127.0.0.1", port))
    return context.wrap_socket(plain, server_hostname="localhost")


def connecting(keys: Keys, **changes: str) -> ssl.SSLContext:
    """Return the context of a node's connections, out of Kafka's keys."""
    roles = {"process.roles": "broker", "node.id": "1", "controller.listener.names": "C"}
    own = {f"ssl.{name.replace('_', '.')}": value for name, value in changes.items()}
    values = parse_all(BROKER_CONFIGS, {**roles, **keys.settings(), **own})
    return client_context(read_settings(SslSettings, values.__getitem__))


async def connect(port: int, context: ssl.SSLContext) -> ClientConnection:
    return await ClientConnection.open(
        host="127.0.0.1",
        port=port,
        client_id="a",
        timeout_ms=TIMEOUT_MS,
        security=ClientSecurity(context),
    )


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_a_node_connects_with_its_certificate(
    keys: Keys, listeners: Listeners, version: str
) -> None:
    context = connecting(keys, enabled_protocols=version)
    connection = await connect(listeners.ports["NEEDS"], context)
    response = await connection.request(SOFTWARE, ApiVersionsResponse, timeout_ms=TIMEOUT_MS)
    assert response.error_code == ErrorCode.NONE
    await connection.close()


@pytest.mark.usefixtures("node")
async def test_a_node_does_not_connect_to_a_node_that_it_does_not_trust(
    keys: Keys, listeners: Listeners, tmp_path: Path
) -> None:
    other = Authority("other").write_pem(tmp_path / "other.pem")
    context = connecting(keys, truststore_location=str(other))
    with pytest.raises(SslAuthenticationError, match="CERTIFICATE_VERIFY_FAILED"):
        await connect(listeners.ports["OPEN"], context)


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_a_node_that_is_not_trusted_hears_of_it(
    keys: Keys, listeners: Listeners, tmp_path: Path, version: str
) -> None:
    stranger = Authority("other").certify("localhost").write_pem(tmp_path / "stranger.pem")
    context = connecting(keys, keystore_location=str(stranger), enabled_protocols=version)
    with pytest.raises(SslAuthenticationError, match="UNKNOWN_CA"):
        await connect(listeners.ports["NEEDS"], context)


async def test_a_node_connects_to_another_host_only_without_the_check(
    keys: Keys, tmp_path: Path
) -> None:
    elsewhere = keys.authority.certify("elsewhere", hosts=("elsewhere.example",))
    own = {"ssl.keystore.location": str(elsewhere.write_pem(tmp_path / "elsewhere.pem"))}
    listeners = Listeners(("OPEN",))
    settings = {**keys.settings(), **listeners.settings(), **own}
    with Node(tmp_path / "node", settings, ports=listeners.own_ports).format():
        with pytest.raises(SslAuthenticationError, match="CERTIFICATE_VERIFY_FAILED"):
            await connect(listeners.ports["OPEN"], connecting(keys))
        unchecked = connecting(keys, endpoint_identification_algorithm="")
        connection = await connect(listeners.ports["OPEN"], unchecked)
        await connection.close()


def test_brokers_that_would_not_trust_each_other_do_not_start(keys: Keys, tmp_path: Path) -> None:
    stranger = Authority("other").certify("localhost")
    listeners = Listeners(("SECRET",))
    settings = {
        **listeners.settings(),
        **keys.settings(),
        "inter.broker.listener.name": "SECRET",
        "ssl.keystore.location": str(stranger.write_pem(tmp_path / "stranger.pem")),
    }
    refused = Node(tmp_path, settings, ports=listeners.own_ports).format()
    refused.launch()
    wait_for(lambda: not refused.process.is_running, "the node has ended")
    assert (
        "for configuration A client SSLEngine created with the provided settings can't connect to "
        "a server SSLEngine created with those settings." in refused.log_text
    )
    refused.kill()


def test_a_node_without_a_key_that_fits_is_refused_in_one_line(keys: Keys, tmp_path: Path) -> None:
    listeners = Listeners(("OPEN",))
    settings = {**listeners.settings(), **keys.settings(), "ssl.keystore.location": "/nowhere.pem"}
    refused = Node(tmp_path, settings, ports=listeners.own_ports).format()
    refused.launch()
    wait_for(lambda: not refused.process.is_running, "the node has ended")
    assert (
        "Listener OPEN cannot use SSL: Failed to load PEM SSL keystore /nowhere.pem: "
        "Unable to read file /nowhere.pem" in refused.log_text
    )
    refused.kill()
