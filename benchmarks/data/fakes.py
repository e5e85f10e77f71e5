"""One broker beside what testers use today: franz-go's kfake and librdkafka's mock cluster.

Neither writes to a disk. Kafka's producer cannot use the mock: it finds no node in its Metadata. So
both sides of that row are measured with librdkafka's. The mock keeps only the last records of a
partition: nothing is consumed of it here.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.data.brokers import RunningBroker, Started, broker, embedded, first_record_s
from benchmarks.data.perf_tools import (
    Figures,
    Load,
    PerfTools,
    Produced,
    median_rows,
    produce_by_librdkafka,
)
from benchmarks.node_start import START_SECONDS_MAX, kvorum_node
from benchmarks.report import Row
from tests.support.kafka.fetch_jars import JARS_ROOT, REFERENCE_RELEASE, find_java
from tests.support.kafka.java import Java
from tests.support.ports import free_ports, listens

ROUNDS: Final = 3
LARGE: Final = Load(300_000, 1024, ("batch.size=65536",))
SMALL: Final = Load(1_000_000, 100)
WARM_UP: Final = (LARGE._replace(records=60_000), SMALL._replace(records=200_000))
KFAKE: Final = Path(__file__).with_name("kfake")
MOCK: Final = (sys.executable, "-m", "benchmarks.data.mock_cluster")
Produce = Callable[[str, str, Load], Produced]


@dataclass(frozen=True, slots=True)
class Peer:
    """One way to have a broker, and the client that it is measured with.

    Without tools it is measured as a broker that keeps no records, by librdkafka.
    """

    name: str
    start: Started
    tools: PerfTools | None
    figures: Figures = field(default_factory=Figures)


def rows() -> list[Row]:
    tools = PerfTools(Java(find_java(), JARS_ROOT / REFERENCE_RELEASE))
    with tempfile.TemporaryDirectory() as folder:
        program = built_kfake(Path(folder))
        ours = Peer("kvorum", lambda: broker(kvorum_node()), tools)
        go_fake = Peer("kfake", lambda: kfake(program), tools)
        beside_mock = Peer("kvorum", ours.start, None)
        mock = Peer("librdkafka's mock", _mock, None)
        peers = [ours, go_fake, beside_mock, mock]
        for turn in range(ROUNDS):
            for peer in peers if turn % 2 == 0 else reversed(peers):
                with peer.start() as running:
                    _measure(running, peer)
        for _ in range(ROUNDS):
            ours.figures.first_record_s.append(first_record_s(embedded))
            go_fake.figures.first_record_s.append(first_record_s(go_fake.start))
    return _rows_of(ours, go_fake) + _rows_of(beside_mock, mock)


def _rows_of(ours: Peer, peer: Peer) -> list[Row]:
    wanted = (
        ("produce, 1 KiB records, batches of 64 KiB", "MiB/s", "large_mib_per_s"),
        ("produce, 100-byte records, default batches", "r/s", "small_records_per_s"),
        ("consume, 1 KiB records, a group of one", "MiB/s", "consumed_mib_per_s"),
        ("resident memory after that", "MiB", "memory_mib"),
        ("start to a group's first record", "s", "first_record_s"),
    )
    return median_rows(wanted, peer.name, ours.figures, peer.figures)


def _measure(running: RunningBroker, peer: Peer) -> None:
    servers, figures, tools = running.servers, peer.figures, peer.tools
    produce: Produce = produce_by_librdkafka
    if tools is not None:
        # Without the tools topics are made by themselves: the mock knows no CreateTopics.
        produce = tools.produce
        for name in ("warm-up", "large", "small"):
            running.create_topic(name)
    for load in WARM_UP:
        produce(servers, "warm-up", load)
    figures.large_mib_per_s.append(produce(servers, "large", LARGE).mib_per_s)
    figures.small_records_per_s.append(produce(servers, "small", SMALL).records_per_s)
    if tools is not None:
        figures.consumed_mib_per_s.append(tools.consume(servers, "large", LARGE.records))
        figures.memory_mib.append(running.memory_mib)


def built_kfake(folder: Path) -> Path:
    """Return the program, built from its sources, which come from Go's registry."""
    go = shutil.which("go")
    if go is None:
        raise FileNotFoundError("kfake needs Go: install it and put it on the PATH")
    program = folder / "kfake"
    subprocess.run([go, "build", "-o", str(program), "."], cwd=KFAKE, check=True)
    return program


@contextmanager
def kfake(program: Path) -> Generator[RunningBroker]:
    """Run the program that `built_kfake` built; it is begun once it listens."""
    (port,) = free_ports(1)
    servers = f"127.0.0.1:{port}"
    with subprocess.Popen([program, str(port)], stdin=subprocess.PIPE) as process:
        try:
            deadline = time.perf_counter() + START_SECONDS_MAX
            while not listens(servers):
                if time.perf_counter() > deadline or process.poll() is not None:
                    raise TimeoutError(f"{program} does not listen")
                time.sleep(0.002)
            yield RunningBroker(servers, process.pid)
        finally:
            process.kill()


@contextmanager
def _mock() -> Generator[RunningBroker]:
    """Run the mock cluster in a process of its own, which prints its address."""
    with subprocess.Popen(
        MOCK, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield RunningBroker(process.stdout.readline().strip(), process.pid)
        finally:
            process.kill()
