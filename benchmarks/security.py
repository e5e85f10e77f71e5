"""Clients with TLS and SCRAM: how many shake hands, what they write and read, what they take."""

import ssl
import statistics
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.data.brokers import RunningBroker
from benchmarks.data.perf_tools import ROUNDS, Load, PerfTools, median_rows
from benchmarks.data.ready_requests import answered, connected, framed, read_frame
from benchmarks.node_start import (
    START_SECONDS_MAX,
    Candidate,
    configured_by,
    kafka_nodes,
    kvorum_node,
    running,
    settings,
    wait_for_first_answer,
)
from benchmarks.report import Row
from tests.support.certificates import NODE_NAME
from tests.support.kafka.fetch_jars import JARS_ROOT, REFERENCE_RELEASE, find_java
from tests.support.kafka.java import Java
from tests.support.ports import free_ports
from tests.support.sasl_clients import SCRAM_CONFIG, SCRAM_MODULE
from tests.support.tls_nodes import Keys

from kvorum.security.sasl_client_authenticator import SaslClientAuthenticator
from kvorum.security.sasl_login import SaslLogin
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_response_frame, with_size
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.records import RecordData, build_batch

LISTENER: Final = "SECRET"
MECHANISM: Final = "SCRAM-SHA-256"
LOGIN: Final = SaslLogin(MECHANISM, "bench", "of the bench")
TOPIC: Final = "secret"
LARGE: Final = Load(750_000, 1024, ("batch.size=65536",))
WARM_UP_RECORDS: Final = 150_000
HANDSHAKES: Final = 4_000
SHAKING: Final = 8
"""The clients that shake hands at a time."""
ASKING: Final = 10
"""The clients that send a record each, again and again."""
ASKING_S: Final = 5.0
CONNECTIONS: Final = 1_000
PRODUCE_VERSION: Final = 9


@dataclass
class Figures:
    """The figures of one candidate, one for each round."""

    handshakes_per_s: list[float] = field(default_factory=list[float])
    produced_mib_per_s: list[float] = field(default_factory=list[float])
    consumed_mib_per_s: list[float] = field(default_factory=list[float])
    requests_per_s: list[float] = field(default_factory=list[float])
    request_p99_ms: list[float] = field(default_factory=list[float])
    connections_mib: list[float] = field(default_factory=list[float])


class SecuredBroker(NamedTuple):
    """A broker, the address of its listener with SASL_SSL, and the keys of both sides."""

    running: RunningBroker
    servers: str
    keys: Keys

    def write_client_settings(self) -> Path:
        """Write the settings of Kafka's clients; return their file."""
        options = f'username="{LOGIN.user}" password="{LOGIN.password}"'
        lines = (
            "security.protocol=SASL_SSL",
            f"sasl.mechanism={MECHANISM}",
            f"sasl.jaas.config={SCRAM_MODULE} required {options};",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={self.keys.trusted}",
        )
        file = self.keys.folder / "client.properties"
        file.write_text("\n".join(lines))
        return file


def rows(divisor: int) -> list[Row]:
    """Return the rows of the report; a divided run has fewer records, clients and handshakes."""
    peer = kafka_nodes()[0]
    candidates = [(kvorum_node(), Figures()), (peer, Figures())]
    for turn in range(ROUNDS):
        for candidate, figures in candidates if turn % 2 == 0 else reversed(candidates):
            with _started(candidate) as secured:
                _measure(secured, figures, divisor)
    (_, ours), (_, theirs) = candidates
    count = f"{max(1, CONNECTIONS // divisor):,}"
    wanted = (
        ("TLS and SCRAM: handshakes", "1/s", "handshakes_per_s"),
        ("the same, produce, 1 KiB records, batches of 64 KiB", "MiB/s", "produced_mib_per_s"),
        ("the same, consume, 1 KiB records, a group of one", "MiB/s", "consumed_mib_per_s"),
        (f"the same, a record of 1 KiB, {ASKING} clients", "r/s", "requests_per_s"),
        (f"the same, a record of 1 KiB, {ASKING} clients, p99", "ms", "request_p99_ms"),
        (f"the same, memory of {count} connections", "MiB", "connections_mib"),
    )
    return median_rows(wanted, peer.name, ours, theirs)


@contextmanager
def _started(candidate: Candidate) -> Generator[SecuredBroker]:
    """Run a broker with a listener in plain text, and one with TLS and SCRAM."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keys = Keys(folder)
        plain, controller, secret = free_ports(3)
        more = _listeners(plain=plain, controller=controller, secret=secret) | keys.settings()
        text = settings(folder, more, broker_port=plain, controller_port=controller)
        node = configured_by(candidate, folder, text, plain)
        user = f"{MECHANISM}=[name={LOGIN.user},password={LOGIN.password}]"
        formatting = [*node.format_command, "--add-scram", user]
        subprocess.run(formatting, check=True, capture_output=True)
        with running(node.run_command) as process:
            deadline = time.perf_counter() + START_SECONDS_MAX
            wait_for_first_answer(node.address, deadline_seconds=deadline)
            broker = RunningBroker(str(node.address), process.pid)
            broker.create_topic(TOPIC)
            yield SecuredBroker(broker, f"{NODE_NAME}:{secret}", keys)


def _listeners(*, plain: int, controller: int, secret: int) -> dict[str, str]:
    ports = {"PLAINTEXT": plain, "CONTROLLER": controller}
    listeners = [f"{name}://127.0.0.1:{port}" for name, port in ports.items()]
    text = ",".join([*listeners, f"{LISTENER}://{NODE_NAME}:{secret}"])
    return {
        "listeners": text,
        "advertised.listeners": text,
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": (
            f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{LISTENER}:SASL_SSL"
        ),
        "sasl.enabled.mechanisms": MECHANISM,
        f"listener.name.{LISTENER.lower()}.{MECHANISM.lower()}.sasl.jaas.config": SCRAM_CONFIG,
    }


def _measure(secured: SecuredBroker, figures: Figures, divisor: int) -> None:
    java = Java(find_java(), JARS_ROOT / REFERENCE_RELEASE)
    tools = PerfTools(java, secured.write_client_settings())
    large = LARGE._replace(records=LARGE.records // divisor)
    warm_up = LARGE._replace(records=WARM_UP_RECORDS // divisor)
    tools.produce(secured.servers, TOPIC, warm_up)
    tools.consume(secured.servers, TOPIC, warm_up.records)
    figures.produced_mib_per_s.append(tools.produce(secured.servers, TOPIC, large).mib_per_s)
    figures.consumed_mib_per_s.append(tools.consume(secured.servers, TOPIC, large.records))
    context = secured.keys.context()
    count = max(SHAKING, HANDSHAKES // divisor)
    _handshakes_per_s(secured.servers, context, count)
    figures.handshakes_per_s.append(_handshakes_per_s(secured.servers, context, count))
    _ask(secured.servers, context, figures, ASKING_S / divisor)
    before_mib = secured.running.memory_mib
    connections = _logged_in(secured.servers, context, max(1, CONNECTIONS // divisor))
    figures.connections_mib.append(max(secured.running.memory_mib - before_mib, 0.1))
    _close(connections)


def _shake_hands(servers: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    return context.wrap_socket(connected(servers), server_hostname=NODE_NAME)


def _handshakes_per_s(servers: str, context: ssl.SSLContext, count: int) -> float:
    """Return how many handshakes are made in a second; each client begins with the next at once."""

    def shake(_: int) -> None:
        _shake_hands(servers, context).close()

    before = time.perf_counter()
    with ThreadPoolExecutor(SHAKING) as clients:
        list(clients.map(shake, range(count)))
    return count / (time.perf_counter() - before)


def _logged_in(servers: str, context: ssl.SSLContext, count: int) -> list[ssl.SSLSocket]:
    """Return connections whose clients have logged in."""
    found: list[ssl.SSLSocket] = []
    for _ in range(count):
        connection = _shake_hands(servers, context)
        authenticator = SaslClientAuthenticator(LOGIN, "bench")
        frame: bytes | None = authenticator.begin()
        while frame is not None:
            connection.sendall(with_size(frame))
            frame = authenticator.receive(read_frame(connection))
        found.append(connection)
    return found


def _ask(servers: str, context: ssl.SSLContext, figures: Figures, seconds: float) -> None:
    """Measure clients that send one record after the other."""
    records = bytes(build_batch([RecordData(bytes(1024), None, 1, ())]))
    data = ProduceRequest.PartitionProduceData(0, records)
    topic = ProduceRequest.TopicProduceData(TOPIC, partition_data=[data])
    request = framed(ProduceRequest(None, -1, 30_000, [topic]), PRODUCE_VERSION)
    connections = _logged_in(servers, context, ASKING)
    connections[0].sendall(request)
    _, response = decode_response_frame(
        read_frame(connections[0]), response_class=ProduceResponse, version=PRODUCE_VERSION
    )
    code = response.responses[0].partition_responses[0].error_code
    if code != ErrorCode.NONE:
        raise AssertionError(f"the broker answers {ErrorCode(code).name}")
    answered(connections, request, seconds=seconds)
    times_s = answered(connections, request, seconds=seconds)
    figures.requests_per_s.append(len(times_s) / seconds)
    figures.request_p99_ms.append(statistics.quantiles(times_s, n=100)[98] * 1000)
    _close(connections)


def _close(connections: Sequence[ssl.SSLSocket]) -> None:
    for connection in connections:
        connection.close()
