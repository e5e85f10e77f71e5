"""Sessions by SASL that have an end, and clients that authenticate again, as at a real node."""

import time
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from tests.interop.listener_pairs import Sides, running_sides
from tests.support.kafka.java import Java, ToolRunner
from tests.support.metrics_scrape import scrape
from tests.support.node_process import write_properties
from tests.support.ports import free_ports
from tests.support.sasl_clients import PLAIN_MODULE, SCRAM_CONFIG, plain_config, plain_token
from tests.support.sasl_exchange import answers, frame
from tests.support.tls_nodes import Listeners
from tests.support.topics import create
from tests.support.waiting import wait_for

from kvorum.wire.messages.api_versions import ApiVersionsRequest
from kvorum.wire.messages.metadata import MetadataRequest
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kvorum.wire.messages.sasl_handshake import SaslHandshakeRequest

pytestmark = pytest.mark.slow

SESSIONS_MS: Final = {"LONG": 60_000, "SHORT": 1_200}
PASSWORD: Final = "secret of alice"
FRAME_BYTES_MAX: Final = 1_000
PERFORMANCE: Final = "org.apache.kafka.tools.ProducerPerformance"
BY_LISTENER: Final = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "plain.sasl.jaas.config": plain_config(alice=PASSWORD, bob="of bob"),
    "scram-sha-256.sasl.jaas.config": SCRAM_CONFIG,
    "sasl.server.max.receive.size": str(FRAME_BYTES_MAX),
}


def token(user: str = "alice", password: str = PASSWORD, version: int = 2) -> bytes:
    return frame(SaslAuthenticateRequest(plain_token(user, password)), version)


SHAKE: Final = frame(SaslHandshakeRequest("PLAIN"), 1)
SHAKE_V0: Final = frame(SaslHandshakeRequest("PLAIN"), 0)
BARE: Final = plain_token("alice", PASSWORD)
LOGIN: Final = (SHAKE, token())
REQUEST: Final = token()
"""After the authentication, a request as any, whose answer no two nodes have differently."""
VERSIONS: Final = frame(ApiVersionsRequest("test", "1"), 3)
OVER: Final = b""
"""The time after which a session of the listener SHORT is over; nothing is sent."""
COUNTS: Final = "kafka_server_socket_server_metrics_"
LONG: Final[Mapping[str, tuple[bytes, ...]]] = {
    "at once": (*LOGIN, *LOGIN, REQUEST),
    "too soon": (*LOGIN, *LOGIN, SHAKE, REQUEST),
    "other user": (*LOGIN, SHAKE, token("bob", "of bob")),
    "other user by a bare token": (*LOGIN, SHAKE_V0, plain_token("bob", "of bob")),
    "bare token": (*LOGIN, SHAKE_V0, BARE, REQUEST),
    "bare tokens": (SHAKE_V0, BARE, SHAKE_V0, BARE, REQUEST),
    "first version": (SHAKE, token(version=0), SHAKE, token(version=0), REQUEST),
    "wrong password": (*LOGIN, SHAKE, token(password="guess")),
    "other mechanism": (*LOGIN, frame(SaslHandshakeRequest("SCRAM-SHA-256"), 1), REQUEST),
    "request after another mechanism": (
        *LOGIN,
        frame(SaslHandshakeRequest("SCRAM-SHA-256"), 1),
        VERSIONS,
    ),
    "mechanism not enabled": (*LOGIN, frame(SaslHandshakeRequest("GSSAPI"), 1)),
    "handshake twice": (*LOGIN, SHAKE, SHAKE),
    "metadata for a token": (*LOGIN, SHAKE, frame(MetadataRequest(topics=[]), 9)),
    "versions for a token": (*LOGIN, SHAKE, VERSIONS),
    "too long": (*LOGIN, SHAKE, token(password="x" * FRAME_BYTES_MAX)),
    "long after the authentication": (*LOGIN, token(password="x" * FRAME_BYTES_MAX)),
    "handshake version 2": (*LOGIN, SHAKE[:3] + b"\x02" + SHAKE[4:]),
}
SHORT: Final[Mapping[str, tuple[bytes, ...]]] = {
    "before the end": (*LOGIN, REQUEST),
    "request": (*LOGIN, OVER, REQUEST),
    "request of a client that does not hear of the end": (
        SHAKE,
        token(version=0),
        OVER,
        REQUEST,
    ),
    "request after bare tokens": (SHAKE_V0, BARE, OVER, REQUEST),
    "versions": (*LOGIN, OVER, VERSIONS),
    "again": (*LOGIN, OVER, *LOGIN, REQUEST),
    "again and then over": (*LOGIN, *LOGIN, OVER, REQUEST),
    "twice again": (*LOGIN, OVER, *LOGIN, OVER, *LOGIN, REQUEST),
}


def settings(metrics: str, listeners: Listeners) -> dict[str, str]:
    return {
        **listeners.settings(),
        **{
            f"listener.name.{name.lower()}.{key}": value
            for name, (key, value) in product(SESSIONS_MS, BY_LISTENER.items())
        },
        "connections.max.reauth.ms": str(SESSIONS_MS["LONG"]),
        "listener.name.short.connections.max.reauth.ms": "1",
        "listener.name.short.plain.connections.max.reauth.ms": str(SESSIONS_MS["SHORT"]),
        "kvorum.metrics.listener": metrics,
    }


@pytest.fixture(scope="module")
def metrics() -> str:
    (port,) = free_ports(1)
    return f"127.0.0.1:{port}"


@pytest.fixture(scope="module")
def sides(
    metrics: str, java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sides]:
    names = tuple(SESSIONS_MS)
    protocols = dict.fromkeys(names, "SASL_PLAINTEXT")
    found = Sides(Listeners(names, protocols), Listeners(names, protocols))
    folder = tmp_path_factory.mktemp("nodes")
    with running_sides(found, folder, partial(settings, metrics), java=java, tools=kafka_tools):
        yield found


def is_past(end_s: float) -> bool | None:
    return time.monotonic() > end_s or None


def waiting_for_ends(frames: tuple[bytes, ...]) -> Iterator[bytes]:
    """Yield the frames, each one after the end of the session where that comes before it."""
    for each in frames:
        if each is not OVER:
            yield each
            continue
        end_s = time.monotonic() + SESSIONS_MS["SHORT"] / 1000 + 0.1
        wait_for(partial(is_past, end_s), "the session is over")


@pytest.mark.parametrize("what", LONG)
def test_a_client_that_authenticates_again_is_answered_as_by_kafka(sides: Sides, what: str) -> None:
    theirs, ours = (answers(each.ports["LONG"], LONG[what]) for each in sides)
    assert ours == theirs


@pytest.mark.parametrize("what", SHORT)
def test_the_end_of_a_session_counts_as_at_kafka(sides: Sides, what: str) -> None:
    theirs, ours = (answers(each.ports["SHORT"], waiting_for_ends(SHORT[what])) for each in sides)
    assert ours == theirs


def counts(metrics: str) -> tuple[float, ...]:
    """Return how many clients have authenticated again, have failed, and have been closed."""
    page = scrape(metrics)
    return tuple(
        page.value(f"{COUNTS}{name}", listener="SHORT", networkProcessor="0")
        for name in (
            "successful_reauthentication_total",
            "failed_reauthentication_total",
            "expired_connections_killed_count",
        )
    )


def test_kafkas_producer_authenticates_again_on_its_connections(
    sides: Sides, metrics: str, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    properties = tmp_path / "client.properties"
    module = f'{PLAIN_MODULE} required username="alice" password="{PASSWORD}";'
    write_properties(
        properties,
        {
            "bootstrap.servers": f"127.0.0.1:{sides.ours.ports['SHORT']}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": module,
        },
    )
    create(f"127.0.0.1:{sides.ours.ports['PLAINTEXT']}", "t")
    earlier = counts(metrics)
    # Five seconds: the sessions of its connection end three or four times.
    records = ("--num-records", "100", "--throughput", "20", "--record-size", "10")
    config = ("--command-config", str(properties))
    printed = kafka_tools.printed(PERFORMANCE, "--topic", "t", *records, *config)
    assert "100 records sent" in printed
    done, failed, expired = (
        after - before for before, after in zip(earlier, counts(metrics), strict=True)
    )
    assert done >= 2
    assert (failed, expired) == (0, 0)
