"""One combined node, ours beside real Kafka: time to the first acknowledged request, and memory.

Both nodes get a freshly formatted directory (formatting is not timed), the same probe and the same
settings. Kafka's Java runs with the flags of its own start script, and once more with the flags for
the quickest start and a small heap.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from benchmarks.report import Row
from tests.support.kafka.fetch_jars import JARS_ROOT, REFERENCE_RELEASE, find_java
from tests.support.kafka.java import Java
from tests.support.ports import free_ports
from tests.support.raw_client import RawClient
from tests.support.resources import Memory

from kvorum.metadata.address import Address
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

CLUSTER_ID = "Zm9yLWJlbmNobWFyay0wMQ"
RUNS = 5
SMALL_HEAP_MB = 256
RUN_CLASS_FLAGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
"""The flags that bin/kafka-run-class.sh of the release passes to Java; a script adds its heap."""
# Those of bin/kafka-server-start.sh.
SCRIPT_FLAGS = ("-Xmx1G", "-Xms1G", *RUN_CLASS_FLAGS)
SETTLE_SECONDS = 3.0
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0
RETRY_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class Sample:
    """The cost of one start; `start_seconds` does not include formatting the directory."""

    format_seconds: float
    start_seconds: float
    resident_mib: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """The commands that format a directory, if a command is needed, and run a node on it.

    `{file}` stands for the settings file, `{port}` for the port of the client listener.
    """

    name: str
    format_command: list[str]
    run_command: list[str]


def kvorum_node() -> Candidate:
    command = [sys.executable, "-m", "kvorum.cli"]
    return Candidate(
        "kvorum",
        [*command, "storage", "format", "-t", CLUSTER_ID, "--standalone", "-c", "{file}"],
        [*command, "server", "{file}"],
    )


def kvorum_dev() -> Candidate:
    """Return the command that formats a directory of its own and runs a node on it."""
    # One combined node, as the others here are.
    size = ["--controllers", "1", "--brokers", "1"]
    command = [sys.executable, "-m", "kvorum.cli", "dev", *size, "--port", "{port}"]
    return Candidate("kvorum dev", [], command)


def kafka_nodes() -> list[Candidate]:
    java = Java(find_java(), JARS_ROOT / REFERENCE_RELEASE)
    identity = ["-t", CLUSTER_ID, "--standalone", "-c", "{file}"]
    formatting = java.command("kafka.tools.StorageTool", "format", *identity)
    as_shipped = [str(java.executable), *SCRIPT_FLAGS, "-cp", f"{java.jars}/*"]
    quick = java.command("kafka.Kafka", "{file}", heap_mb=SMALL_HEAP_MB)
    name = f"Kafka {REFERENCE_RELEASE}"
    return [
        Candidate(name, formatting, [*as_shipped, "kafka.Kafka", "{file}"]),
        Candidate(f"{name}, quickest flags", formatting, quick),
    ]


def settings(
    folder: Path, more: Mapping[str, str], *, broker_port: int, controller_port: int
) -> str:
    listeners = f"PLAINTEXT://127.0.0.1:{broker_port},CONTROLLER://127.0.0.1:{controller_port}"
    return "\n".join(
        [
            "process.roles=broker,controller",
            "node.id=1",
            f"controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}",
            f"listeners={listeners}",
            f"advertised.listeners={listeners}",
            "controller.listener.names=CONTROLLER",
            f"log.dirs={folder / 'data'}",
            "offsets.topic.replication.factor=1",
            *(f"{key}={value}" for key, value in more.items()),
            "",
        ]
    )


@dataclass(frozen=True, slots=True)
class ConfiguredNode:
    """The commands of a candidate for one directory, and where its client listener will be."""

    format_command: list[str]
    run_command: list[str]
    address: Address


def configured(
    candidate: Candidate, folder: Path, more: Mapping[str, str] = MappingProxyType({})
) -> ConfiguredNode:
    """Write the settings of a node whose data goes below `folder`, with `more` than the usual."""
    broker_port, controller_port = free_ports(2)
    text = settings(folder, more, broker_port=broker_port, controller_port=controller_port)
    return configured_by(candidate, folder, text, broker_port)


def configured_by(
    candidate: Candidate, folder: Path, text: str, broker_port: int
) -> ConfiguredNode:
    """Write the text of a node's settings."""
    file = folder / "server.properties"
    file.write_text(text)
    words = {"{file}": str(file), "{port}": str(broker_port)}
    format_command, run_command = (
        [words.get(word, word) for word in command]
        for command in (candidate.format_command, candidate.run_command)
    )
    return ConfiguredNode(format_command, run_command, Address("127.0.0.1", broker_port))


def measure(candidate: Candidate, cache: str) -> Sample:
    """Format, start, wait for the first acknowledged topic, measure the memory, and stop.

    `cache` is the folder for Python's bytecode, which an installed package already has.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as name:
        node = configured(candidate, Path(name))
        before = time.perf_counter()
        if node.format_command:
            subprocess.run(node.format_command, check=True, capture_output=True, env=environment)
        started = time.perf_counter()
        with running(node.run_command, environment) as process:
            answered = wait_for_first_answer(
                node.address, deadline_seconds=started + START_SECONDS_MAX
            )
            time.sleep(SETTLE_SECONDS)
            return Sample(started - before, answered - started, resident_mib(process.pid))


@contextlib.contextmanager
def running(
    command: list[str], environment: dict[str, str] | None = None
) -> Generator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    try:
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def resident_mib(process_id: int) -> float:
    return Memory(process_id).resident_bytes() / (1 << 20)


def wait_for_first_answer(address: Address, *, deadline_seconds: float) -> float:
    """Return the `time.perf_counter()` at which the first CreateTopics was acknowledged."""
    topic = CreateTopicsRequest.CreatableTopic("first", num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=5000)
    while time.perf_counter() < deadline_seconds:
        # A node that has only begun refuses the connection, or closes it.
        with contextlib.suppress(OSError, AssertionError), RawClient(str(address)) as client:
            (answered,) = client.ask(request, CreateTopicsResponse, 7).topics
            if answered.error_code in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                return time.perf_counter()
        time.sleep(RETRY_SECONDS)
    raise TimeoutError(f"no answer from {address}")


def rows() -> list[Row]:
    """Measure in turns, so that all run on the same machine state; return the medians."""
    candidates = [kvorum_node(), kvorum_dev(), *kafka_nodes()]
    samples: dict[str, list[Sample]] = {candidate.name: [] for candidate in candidates}
    with tempfile.TemporaryDirectory() as cache:
        for candidate in candidates[:2]:
            measure(candidate, cache)
        for _ in range(RUNS):
            for candidate in candidates:
                samples[candidate.name].append(measure(candidate, cache))
    server, dev = samples.pop("kvorum"), samples.pop("kvorum dev")
    return [row for peer, theirs in samples.items() for row in rows_of(server, dev, peer, theirs)]


def rows_of(server: list[Sample], dev: list[Sample], peer: str, theirs: list[Sample]) -> list[Row]:
    started = "start to first answered CreateTopics"
    from_nothing = "the same from an empty directory (kvorum dev)"
    resident = "resident memory of an idle node"
    return [
        Row(started, peer, start_ms(server), start_ms(theirs), "ms"),
        Row(from_nothing, peer, whole_ms(dev), whole_ms(theirs), "ms"),
        Row(resident, peer, mebibytes(server), mebibytes(theirs), "MiB"),
        Row(f"{resident} (kvorum dev)", peer, mebibytes(dev), mebibytes(theirs), "MiB"),
    ]


def start_ms(samples: list[Sample]) -> float:
    return statistics.median(sample.start_seconds for sample in samples) * 1000


def whole_ms(samples: list[Sample]) -> float:
    """Return the median duration of formatting and starting together."""
    return statistics.median(each.format_seconds + each.start_seconds for each in samples) * 1000


def mebibytes(samples: list[Sample]) -> float:
    return statistics.median(sample.resident_mib for sample in samples)
