"""A broker with many partitions: how soon it serves all of them again, and its memory.

A record is appended to every partition before each stop, so that each has something new on disk.
"""

import itertools
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.data.perf_tools import median_rows
from benchmarks.node_start import (
    Candidate,
    ConfiguredNode,
    configured,
    kafka_nodes,
    kvorum_node,
    resident_mib,
)
from benchmarks.report import Row
from tests.support.raw_client import RawClient

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.records import RecordData, build_batch

PARTITIONS_OF_TOPIC: Final = 100
ANSWER_S_MAX: Final = 120.0
RETRY_S: Final = 0.005
PATIENCE_S: Final = 600.0
LATEST: Final = -1
_CREATE_TOPICS_VERSION: Final = 7
_PRODUCE_VERSION: Final = 9
_LIST_OFFSETS_VERSION: Final = 7
_TOPICS_A_REQUEST: Final = 10
_NOT_THERE_YET: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)


class NotServedError(Exception):
    """The broker has answered, but does not serve a partition."""


def topic_names(partitions: int) -> list[str]:
    """Return the names of topics that have so many partitions together."""
    return [f"many-{number}" for number in range(partitions // PARTITIONS_OF_TOPIC)]


@contextmanager
def connected(address: str) -> Generator[RawClient]:
    with RawClient(address) as client:
        client.socket.settimeout(ANSWER_S_MAX)
        yield client


def create_topics(client: RawClient, names: list[str]) -> None:
    for some in _in_groups(names):
        topics = [CreateTopicsRequest.CreatableTopic(name, PARTITIONS_OF_TOPIC, 1) for name in some]
        request = CreateTopicsRequest(topics, int(ANSWER_S_MAX * 1000))
        response = client.ask(request, CreateTopicsResponse, _CREATE_TOPICS_VERSION)
        _check(one.error_code for one in response.topics)


def produce_to_each(client: RawClient, names: list[str], *, value: bytes) -> None:
    records = bytes(build_batch([RecordData(value, None, 1, ())]))
    for some in _in_groups(names):
        data = [
            ProduceRequest.TopicProduceData(
                name,
                partition_data=[
                    ProduceRequest.PartitionProduceData(index, records)
                    for index in range(PARTITIONS_OF_TOPIC)
                ],
            )
            for name in some
        ]
        request = ProduceRequest(None, -1, int(ANSWER_S_MAX * 1000), data)
        response = client.ask(request, ProduceResponse, _PRODUCE_VERSION)
        _check(
            partition.error_code
            for topic in response.responses
            for partition in topic.partition_responses
        )


def check_end_offsets(client: RawClient, names: list[str], *, expected: int) -> None:
    """Ask for the end of every partition; raises NotServedError where one is not served."""
    for some in _in_groups(names):
        topics = [
            ListOffsetsRequest.ListOffsetsTopic(
                name,
                [
                    ListOffsetsRequest.ListOffsetsPartition(index, timestamp=LATEST)
                    for index in range(PARTITIONS_OF_TOPIC)
                ],
            )
            for name in some
        ]
        request = ListOffsetsRequest(replica_id=-1, topics=topics)
        response = client.ask(request, ListOffsetsResponse, _LIST_OFFSETS_VERSION)
        found = [partition for topic in response.topics for partition in topic.partitions]
        _check(partition.error_code for partition in found)
        if any(partition.offset != expected for partition in found):
            raise AssertionError(f"a partition does not end at {expected}")


def wait_for_end_offsets(address: str, names: list[str], *, expected: int) -> float:
    """Return the `time.perf_counter()` at which every partition was served."""
    deadline = time.perf_counter() + PATIENCE_S
    waiting = names
    while time.perf_counter() < deadline:
        try:
            with connected(address) as client:
                while waiting:
                    check_end_offsets(client, waiting[:_TOPICS_A_REQUEST], expected=expected)
                    waiting = waiting[_TOPICS_A_REQUEST:]
                return time.perf_counter()
        except (OSError, NotServedError):
            time.sleep(RETRY_S)
    raise TimeoutError(f"{len(waiting)} topics are not served")


def _in_groups(names: list[str]) -> Iterator[list[str]]:
    remaining = iter(names)
    while some := list(itertools.islice(remaining, _TOPICS_A_REQUEST)):
        yield some


def _check(codes: Iterator[int]) -> None:
    for code in codes:
        if code in _NOT_THERE_YET:
            raise NotServedError(ErrorCode(code).name)
        if code != ErrorCode.NONE:
            raise AssertionError(f"the broker answers {ErrorCode(code).name}")


SIZES: Final = (2_000, 10_000)
STARTS: Final = 3
STOP_S_MAX: Final = 300.0
VALUE: Final = bytes(1000)


@dataclass
class Figures:
    clean_s: list[float] = field(default_factory=list[float])
    killed_s: list[float] = field(default_factory=list[float])
    memory_mib: list[float] = field(default_factory=list[float])


def rows(divisor: int) -> list[Row]:
    """Return the rows of the report; the numbers of partitions are divided."""
    ours, peer = kvorum_node(), kafka_nodes()[0]
    found: list[Row] = []
    for size in (size // divisor for size in SIZES):
        mine, theirs = (_measure(candidate, size) for candidate in (ours, peer))
        wanted = (
            (f"start with {size:,} partitions after a clean stop", "s", "clean_s"),
            (f"start with {size:,} partitions after kill -9", "s", "killed_s"),
            (f"resident memory with {size:,} partitions", "MiB", "memory_mib"),
        )
        found += median_rows(wanted, peer.name, mine, theirs)
    return found


def _measure(candidate: Candidate, size: int) -> Figures:
    figures = Figures()
    with tempfile.TemporaryDirectory() as folder:
        node = configured(candidate, Path(folder))
        subprocess.run(node.format_command, check=True, capture_output=True)
        _Life(node, topic_names(size), figures).live()
    return figures


class _Life:
    """One node that is started again and again on the same directory."""

    def __init__(self, node: ConfiguredNode, names: list[str], figures: Figures) -> None:
        self._node, self._names, self._figures = node, names, figures
        self._address = f"{node.address.host}:{node.address.port}"
        self._records = 0

    def live(self) -> None:
        process, _ = self._start(names=[])
        try:
            with connected(self._address) as client:
                create_topics(client, self._names)
            wait_for_end_offsets(self._address, self._names, expected=0)
            self._append()
            for number in range(2 * STARTS):
                is_killed = number % 2 == 1
                process.send_signal(signal.SIGKILL if is_killed else signal.SIGTERM)
                process.wait(STOP_S_MAX)
                process, took_s = self._start(self._names)
                (self._figures.killed_s if is_killed else self._figures.clean_s).append(took_s)
                self._append()
                self._figures.memory_mib.append(resident_mib(process.pid))
        finally:
            process.kill()
            process.wait()

    def _start(self, names: list[str]) -> tuple[subprocess.Popen[bytes], float]:
        """Return the process and the seconds until it served every partition."""
        begun = time.perf_counter()
        process = subprocess.Popen(
            self._node.run_command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            served = wait_for_end_offsets(self._address, names, expected=self._records)
        except BaseException:
            process.kill()
            process.wait()
            raise
        return process, served - begun

    def _append(self) -> None:
        with connected(self._address) as client:
            produce_to_each(client, self._names, value=VALUE)
        self._records += 1
