"""Listeners that authenticate clients by SASL, or refuse them."""

import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from tests.support.metrics_scrape import scrape
from tests.support.node import Node
from tests.support.ports import free_ports
from tests.support.raw_client import RawClient
from tests.support.sasl_clients import log_in, plain_config, plain_token, send_token, shake_hands
from tests.support.tls_nodes import Keys, Listeners, TlsClient
from tests.support.topics import create
from tests.support.waiting import wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest

pytestmark = pytest.mark.slow

TOPIC: Final = "orders"
PASSWORD: Final = "s3cret-of-alice"
DELAY_MS: Final = 200
IDLE_MS: Final = 2_000
FRAME_BYTES_MAX: Final = 1_000
AUTHENTICATIONS: Final = "kafka_server_socket_server_metrics_{}_authentication_total"
WRONG_PASSWORD: Final = "Authentication failed: Invalid username or password"
SOFTWARE: Final = ApiVersionsRequest("test", "1")
BY_LISTENER: Final = {
    "sasl.enabled.mechanisms": "PLAIN",
    "plain.sasl.jaas.config": plain_config(alice=PASSWORD, bob="of bob"),
}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def listeners() -> Listeners:
    return Listeners(("OPEN", "TLS"), {"OPEN": "SASL_PLAINTEXT", "TLS": "SASL_SSL"})


@pytest.fixture(scope="module")
def metrics() -> str:
    (port,) = free_ports(1)
    return f"127.0.0.1:{port}"


def by_listener(listener: str, changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the settings of SASL of one listener."""
    return {
        f"listener.name.{listener}.{key}": value
        for key, value in {**BY_LISTENER, **(changes or {})}.items()
    }


@pytest.fixture(scope="module")
def node(
    keys: Keys, listeners: Listeners, metrics: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    settings = {
        **keys.settings(),
        **listeners.settings(),
        **by_listener("open", {"sasl.server.max.receive.size": str(FRAME_BYTES_MAX)}),
        **by_listener("tls"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice",
        "ssl.client.auth": "required",
        "connections.max.idle.ms": str(IDLE_MS),
        "connection.failed.authentication.delay.ms": str(DELAY_MS),
        "kvorum.metrics.listener": metrics,
    }
    folder = tmp_path_factory.mktemp("node")
    with Node(folder, settings, ports=listeners.own_ports).format() as running:
        assert create(running.broker, TOPIC) == [ErrorCode.NONE]
        yield running


@pytest.fixture
def client(node: Node, listeners: Listeners) -> Iterator[RawClient]:
    """Yield a client of the listener without TLS, which has sent nothing yet."""
    del node
    with RawClient(f"127.0.0.1:{listeners.ports['OPEN']}") as connected:
        yield connected


def authentications(metrics: str, result: str, listener: str) -> float:
    page = scrape(metrics)
    return page.value(AUTHENTICATIONS.format(result), listener=listener, networkProcessor="0")


def topic_code(client: RawClient) -> int:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=TOPIC)])
    (topic,) = client.ask(request, MetadataResponse, 9).topics
    return topic.error_code


def test_the_authorizer_decides_about_the_user_of_the_password(
    client: RawClient, listeners: Listeners
) -> None:
    assert log_in(client, "alice", PASSWORD).error_code == ErrorCode.NONE
    assert topic_code(client) == ErrorCode.NONE
    with RawClient(f"127.0.0.1:{listeners.ports['OPEN']}") as other:
        assert log_in(other, "bob", "of bob").error_code == ErrorCode.NONE
        assert topic_code(other) == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.usefixtures("node")
def test_sasl_by_tls_needs_no_certificate_and_names_the_user(
    keys: Keys, listeners: Listeners, metrics: str
) -> None:
    before = authentications(metrics, "successful", "TLS")
    certificates = (None, keys.client("stranger"))
    for file in certificates:
        with TlsClient(listeners.ports["TLS"], keys.context(file)) as client:
            assert client.ask(SOFTWARE, ApiVersionsResponse, 3).error_code == ErrorCode.NONE
            assert log_in(client, "alice", PASSWORD).error_code == ErrorCode.NONE
            assert topic_code(client) == ErrorCode.NONE
    assert authentications(metrics, "successful", "TLS") == before + len(certificates)


def test_a_wrong_password_is_answered_late_and_counted_and_logged_without_it(
    client: RawClient, node: Node, metrics: str
) -> None:
    before = authentications(metrics, "failed", "OPEN")
    shake_hands(client, "PLAIN")
    asked_s = time.monotonic()
    answer = send_token(client, plain_token("alice", "a-wrong-guess"))
    assert time.monotonic() - asked_s >= DELAY_MS / 1000
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == WRONG_PASSWORD
    assert client.is_closed()
    assert authentications(metrics, "failed", "OPEN") == before + 1
    assert f"Failed authentication with /127.0.0.1 ({WRONG_PASSWORD})" in node.log_text
    for secret in (PASSWORD, "a-wrong-guess"):
        assert secret not in node.log_text


@pytest.mark.parametrize("has_asked_for_versions", [False, True])
def test_no_request_is_answered_before_the_authentication(
    client: RawClient, has_asked_for_versions: bool
) -> None:
    if has_asked_for_versions:
        client.ask(SOFTWARE, ApiVersionsResponse, 3)
    client.send(MetadataRequest(topics=[]), 9)
    assert client.is_closed()


def test_requests_that_follow_a_refused_token_are_dropped(client: RawClient) -> None:
    shake_hands(client, "PLAIN")
    client.send(SaslAuthenticateRequest(plain_token("alice", "wrong")), 2)
    client.send(MetadataRequest(topics=[]), 9)
    assert client.read_frame() is not None
    assert client.is_closed()


def test_a_frame_that_is_too_long_before_the_authentication_is_not_waited_for(
    client: RawClient,
) -> None:
    asked_s = time.monotonic()
    client.send_bytes(struct.pack(">i", FRAME_BYTES_MAX + 1))
    assert client.is_closed()
    assert DELAY_MS / 1000 <= time.monotonic() - asked_s < IDLE_MS / 1000


def test_a_frame_may_be_longer_once_the_client_is_authenticated(client: RawClient) -> None:
    assert log_in(client, "alice", PASSWORD).error_code == ErrorCode.NONE
    names = [MetadataRequest.MetadataRequestTopic(name="x" * 100) for _ in range(20)]
    assert client.ask(MetadataRequest(topics=names), MetadataResponse, 9).brokers


def test_a_client_that_does_not_go_on_with_its_authentication_is_idle(client: RawClient) -> None:
    shake_hands(client, "PLAIN")
    assert client.is_closed()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "Could not find a 'KafkaServer' or 'open.KafkaServer' entry in the JAAS"),
        (
            "org.foo.Bar required;",
            "javax.security.auth.login.LoginException: No LoginModule found for org.foo.Bar",
        ),
        ("x required", "JAAS config entry not terminated by semi-colon"),
    ],
)
def test_a_listener_without_a_login_module_that_fits_is_refused_in_one_line(
    tmp_path: Path, text: str | None, message: str
) -> None:
    listeners = Listeners(("OPEN",), {"OPEN": "SASL_PLAINTEXT"})
    settings = {**listeners.settings(), **by_listener("open")}
    del settings["listener.name.open.plain.sasl.jaas.config"]
    if text is not None:
        settings["listener.name.open.plain.sasl.jaas.config"] = text
    refused = Node(tmp_path, settings, ports=listeners.own_ports).format()
    refused.launch()
    wait_for(lambda: not refused.process.is_running, "the node has ended")
    assert f"Listener OPEN cannot use SASL: {message}" in refused.log_text
    refused.kill()
