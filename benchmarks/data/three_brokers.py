"""Three brokers, one of them the controller as well: replicated records by Kafka's perf tools."""

import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.data.brokers import WAIT_S
from benchmarks.data.perf_tools import Load, Loads, measured_in_turns, median_rows
from benchmarks.node_start import Candidate, kafka_nodes, resident_mib, running
from benchmarks.report import Row
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.support.ports import free_ports

BROKERS: Final = 3
LARGE: Final = Load(100_000, 1024, ("batch.size=65536", "acks=all"))
SMALL: Final = Load(500_000, 100, ("acks=all",))
WARM_UP: Final = (LARGE._replace(records=20_000), SMALL._replace(records=100_000))
LOADS: Final = Loads(LARGE, SMALL, WARM_UP)
START_S_MAX: Final = 120.0
RETRY_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class RunningBrokers:
    servers: str
    process_ids: list[int]

    @property
    def memory_mib(self) -> float:
        return sum(resident_mib(one) for one in self.process_ids)

    def create_topic(self, name: str) -> None:
        """Create a topic with one partition that every broker has a replica of."""
        admin: Any = AdminClient({"bootstrap.servers": self.servers})
        deadline = time.perf_counter() + START_S_MAX
        while True:
            topic = NewTopic(name, 1, BROKERS, config={"min.insync.replicas": "2"})
            try:
                for future in admin.create_topics([topic]).values():
                    future.result(WAIT_S)
                return
            except KafkaException:
                # Not every broker has registered yet.
                if time.perf_counter() > deadline:
                    raise
            time.sleep(RETRY_S)


def rows() -> list[Row]:
    ours, theirs = measured_in_turns(brokers, LOADS)
    wanted = (
        ("three brokers: produce, 1 KiB records, acks=all", "MiB/s", "large_mib_per_s"),
        ("three brokers: produce, 100-byte records, acks=all", "r/s", "small_records_per_s"),
        ("three brokers: consume, 1 KiB records", "MiB/s", "consumed_mib_per_s"),
        ("three brokers: produce to consume, p99", "ms", "end_to_end_p99_ms"),
        ("three brokers: resident memory together", "MiB", "memory_mib"),
    )
    return median_rows(wanted, kafka_nodes()[0].name, ours, theirs)


@contextmanager
def brokers(candidate: Candidate) -> Generator[RunningBrokers]:
    """Format directories, and run three of the candidate's processes on them."""
    controller_port, *ports = free_ports(1 + BROKERS)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        process_ids: list[int] = []
        for node_id, port in enumerate(ports, 1):
            file = Path(name) / f"{node_id}.properties"
            file.write_text(_settings(Path(name), node_id, port, controller_port))
            role = "--standalone" if node_id == 1 else "--no-initial-controllers"
            words = {"{file}": str(file), "--standalone": role}
            formatting, run = (
                [words.get(word, word) for word in command]
                for command in (candidate.format_command, candidate.run_command)
            )
            subprocess.run(formatting, check=True, capture_output=True)
            process_ids.append(stack.enter_context(running(run)).pid)
        yield RunningBrokers(",".join(f"127.0.0.1:{port}" for port in ports), process_ids)


def _settings(folder: Path, node_id: int, port: int, controller_port: int) -> str:
    controller = f"CONTROLLER://127.0.0.1:{controller_port}"
    own = f"PLAINTEXT://127.0.0.1:{port}"
    is_controller = node_id == 1
    listeners = f"{own},{controller}" if is_controller else own
    return "\n".join(
        [
            f"process.roles={'broker,controller' if is_controller else 'broker'}",
            f"node.id={node_id}",
            f"controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}",
            f"listeners={listeners}",
            f"advertised.listeners={listeners}",
            "controller.listener.names=CONTROLLER",
            f"log.dirs={folder / str(node_id)}",
            "offsets.topic.replication.factor=3",
            "",
        ]
    )
