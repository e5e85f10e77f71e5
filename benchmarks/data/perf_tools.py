"""Loads by Kafka's producer- and consumer-perf-test, and the figures of a candidate under them.

Each tool runs in a Java process as its script does. For a broker that Kafka's client cannot use,
the same load is made by librdkafka's producer. The time from produce to consume is that of records
at an even pace, each with the time at which it was sent.
"""

import re
import statistics
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from benchmarks.node_start import RUN_CLASS_FLAGS, Candidate, kafka_nodes, kvorum_node
from benchmarks.report import Row
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.support.kafka.fetch_jars import JARS_ROOT, REFERENCE_RELEASE, find_java
from tests.support.kafka.java import LOG_SETTINGS, Java

SCRIPT_FLAGS: Final = ("-Xmx512M", *RUN_CLASS_FLAGS)
"""The flags that the scripts of the release give to Java."""
TIMEOUT_S: Final = 600
ROUNDS: Final = 3
FIRST_RECORD_MS_MAX: Final = 60_000
"""The time for a consumer to join; the first one has the topic of offsets created."""
POLL_S: Final = 0.1
_SUMMARY: Final = re.compile(
    r"^(\d+) records sent, ([\d.]+) records/sec \(([\d.]+) MB/sec\).* ms 99th", re.MULTILINE
)
RECORDS_PER_S: Final = 1000
PACED_SECONDS: Final = 15
WARM_UP_SECONDS: Final = 3
PACED_POLL_S: Final = 10.0
_TIME: Final = struct.Struct(">d")


class Produced(NamedTuple):
    """The summary of the producer: records and mebibytes a second."""

    records_per_s: float
    mib_per_s: float


class Load(NamedTuple):
    """Records to produce: how many of which size, and the producer's own settings."""

    records: int
    record_bytes: int
    settings: tuple[str, ...] = ()
    throughput: int = -1


def produce_by_librdkafka(servers: str, topic: str, load: Load) -> Produced:
    """Produce a load with an idempotent producer of librdkafka; its settings are those of Kafka's.

    Raises RuntimeError where a record is not acknowledged.
    """
    settings = dict(each.split("=", maxsplit=1) for each in load.settings)
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, **settings})
    value = bytes(load.record_bytes)
    begin = time.perf_counter()
    for _ in range(load.records):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(POLL_S)
    if producer.flush(TIMEOUT_S):
        raise RuntimeError("not every record was acknowledged")
    records_per_s = load.records / (time.perf_counter() - begin)
    return Produced(records_per_s, records_per_s * load.record_bytes / (1 << 20))


class PerfTools:
    """The tools, whose clients have the settings in `config` besides the load's."""

    def __init__(self, java: Java, config: Path | None = None) -> None:
        self._java = java
        self._config = () if config is None else ("--command-config", str(config))

    def produce(self, servers: str, topic: str, load: Load) -> Produced:
        output = self._run(
            "org.apache.kafka.tools.ProducerPerformance",
            "--bootstrap-server",
            servers,
            "--topic",
            topic,
            "--num-records",
            str(load.records),
            "--record-size",
            str(load.record_bytes),
            "--throughput",
            str(load.throughput),
            # One option with all of them: of several the tool takes the last one only.
            *(("--command-property", *load.settings) if load.settings else ()),
        )
        (*_, found) = _SUMMARY.finditer(output)
        if int(found.group(1)) != load.records:
            raise RuntimeError(f"not every record was sent:\n{output}")
        return Produced(float(found.group(2)), float(found.group(3)))

    def consume(self, servers: str, topic: str, records: int) -> float:
        """Return the mebibytes a second, without the time in which the consumer joined."""
        output = self._run(
            "org.apache.kafka.tools.ConsumerPerformance",
            "--bootstrap-server",
            servers,
            "--topic",
            topic,
            "--num-records",
            str(records),
            "--hide-header",
            "--timeout",
            str(FIRST_RECORD_MS_MAX),
        )
        fields = output.strip().splitlines()[-1].split(", ")
        if int(fields[4]) < records:
            raise RuntimeError(f"not every record was received:\n{output}")
        return float(fields[8])

    def _run(self, tool: str, *arguments: str) -> str:
        command = [
            str(self._java.executable),
            *SCRIPT_FLAGS,
            f"-Dlog4j2.configurationFile={LOG_SETTINGS}",
            *("-cp", f"{self._java.jars}/*", tool, *arguments, *self._config),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{tool}:\n{done.stdout}{done.stderr}")
        return done.stdout


@dataclass
class Figures:
    """The figures of one candidate, one for each round; none for what it was not asked."""

    large_mib_per_s: list[float] = field(default_factory=list[float])
    small_records_per_s: list[float] = field(default_factory=list[float])
    consumed_mib_per_s: list[float] = field(default_factory=list[float])
    end_to_end_p99_ms: list[float] = field(default_factory=list[float])
    memory_mib: list[float] = field(default_factory=list[float])
    first_record_s: list[float] = field(default_factory=list[float])


class Loads(NamedTuple):
    """The loads of a round, after some of each to warm up."""

    large: Load
    small: Load
    warm_up: tuple[Load, ...]


class Running(Protocol):
    @property
    def servers(self) -> str: ...

    @property
    def memory_mib(self) -> float: ...

    def create_topic(self, name: str) -> None: ...


def measure(running: Running, tools: PerfTools, loads: Loads, figures: Figures) -> None:
    servers = running.servers
    for name in ("warm-up", "large", "small", "paced"):
        running.create_topic(name)
    for load in loads.warm_up:
        tools.produce(servers, "warm-up", load)
    tools.consume(servers, "warm-up", loads.warm_up[0].records)
    figures.large_mib_per_s.append(tools.produce(servers, "large", loads.large).mib_per_s)
    figures.small_records_per_s.append(tools.produce(servers, "small", loads.small).records_per_s)
    figures.consumed_mib_per_s.append(tools.consume(servers, "large", loads.large.records))
    figures.end_to_end_p99_ms.append(p99_ms(servers, "paced"))
    figures.memory_mib.append(running.memory_mib)


def measured_in_turns(
    begin: Callable[[Candidate], AbstractContextManager[Running]], loads: Loads
) -> tuple[Figures, Figures]:
    """Return the figures of ours and of real Kafka, each of which runs alone.

    Each round starts both again, ours first in every other one.
    """
    tools = PerfTools(Java(find_java(), JARS_ROOT / REFERENCE_RELEASE))
    candidates = [(kvorum_node(), Figures()), (kafka_nodes()[0], Figures())]
    for turn in range(ROUNDS):
        for candidate, figures in candidates if turn % 2 == 0 else reversed(candidates):
            with begin(candidate) as running:
                measure(running, tools, loads, figures)
    (_, ours), (_, theirs) = candidates
    return ours, theirs


def median_rows(
    wanted: Iterable[tuple[str, str, str]], peer: str, ours: object, theirs: object
) -> list[Row]:
    """Return a row for each (text, unit, field of both) that the peer has figures of."""
    return [
        Row(
            what,
            peer,
            statistics.median(getattr(ours, name)),
            statistics.median(getattr(theirs, name)),
            unit,
            is_rate=unit.endswith("/s"),
        )
        for what, unit, name in wanted
        if getattr(theirs, name)
    ]


def p99_ms(servers: str, topic: str) -> float:
    """Return the 99th percentile of the time from produce to consume, in milliseconds."""
    settings = {"bootstrap.servers": servers, "group.id": "end-to-end", "fetch.wait.max.ms": 500}
    consumer: Any = Consumer({**settings, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    count = RECORDS_PER_S * (WARM_UP_SECONDS + PACED_SECONDS)
    producing = threading.Thread(target=_produce, args=(servers, topic, count), daemon=True)
    producing.start()
    latencies: list[float] = []
    while len(latencies) < count:
        message = consumer.poll(PACED_POLL_S)
        if message is None or message.error():
            raise RuntimeError(f"{len(latencies)} of {count} records came")
        latencies.append(time.perf_counter() - _TIME.unpack_from(message.value())[0])
    producing.join()
    consumer.close()
    return statistics.quantiles(latencies[RECORDS_PER_S * WARM_UP_SECONDS :], n=100)[98] * 1000


def _produce(servers: str, topic: str, count: int) -> None:
    # As many requests at a time as Java's producer sends, so that records are collected meanwhile:
    # a broker answers those of one connection one after the other.
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "max.in.flight": 5})
    begun = time.perf_counter()
    for number in range(count):
        due = begun + number / RECORDS_PER_S
        while (now := time.perf_counter()) < due:
            producer.poll(due - now)
        producer.produce(topic, _TIME.pack(time.perf_counter()) + bytes(92), partition=0)
    producer.flush(PACED_POLL_S)
