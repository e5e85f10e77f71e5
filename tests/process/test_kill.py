"""``kill -9`` in the middle of a stream of CreateTopics, many times on the same data."""

import json
import os
import random
import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from tests.support.fixtures import Report
from tests.support.kafka.java import ToolRunner
from tests.support.node import QUICK, Node
from tests.support.raw_client import RawClient
from tests.support.topics import TopicFacts, create, create_request, read_topics
from tests.support.waiting import Threads, wait_for_change

from kvorum.cli import main
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsResponse

TOPICS_EACH = 2
IS_THERE = frozenset({ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS})
# A broker that a busy machine kept from its heartbeats is fenced for a moment; a client asks again.
ASK_AGAIN = frozenset({ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.REQUEST_TIMED_OUT})


@dataclass
class Ledger:
    """The answers to clients, and their requests without an answer."""

    acknowledged: dict[str, TopicFacts] = field(default_factory=dict[str, TopicFacts])
    pending: set[str] = field(default_factory=set[str])
    requests_answered: int = 0
    problems: list[str] = field(default_factory=list[str])


class Stream:
    """Several clients at once that create topics on one node, each request after the other."""

    def __init__(self, address: str, *, label: str, clients: int, ledger: Ledger) -> None:
        self._address = address
        self._label = label
        self._ledger = ledger
        self._answered = 0
        self._changed = threading.Condition()
        self._is_over = False
        self._clients = clients
        self._threads = Threads()

    def start(self) -> None:
        retries = sorted(self._ledger.pending)
        for number in range(self._clients):
            self._threads.start(self._run, number, retries[number :: self._clients])

    def wait_for_answers(self, count: int) -> None:
        """Return once so many requests of this stream were answered."""
        wait_for_change(
            self._changed,
            lambda: self._answered >= count or bool(self._ledger.problems),
            f"{count} requests are answered",
            otherwise=lambda: f"{self._answered} were",
        )
        assert self._ledger.problems == []

    def join(self) -> None:
        """Wait until every client has noticed that the node is gone."""
        self._is_over = True
        self._threads.join()
        assert self._ledger.problems == []

    def _run(self, number: int, retries: list[str]) -> None:
        sequence = 0
        try:
            with RawClient(self._address) as client:
                if retries:
                    self._create(client, retries)
                while not self._is_over:
                    names = [
                        f"{self._label}-{number}-{sequence}-{index}" for index in range(TOPICS_EACH)
                    ]
                    self._create(client, names)
                    sequence += 1
        except (OSError, EOFError):
            return
        except Exception as error:  # noqa: BLE001 - the test reports it
            self._note_problem(f"{type(error).__name__}: {error}")

    def _create(self, client: RawClient, names: Iterable[str]) -> None:
        request = create_request([])
        for name in names:
            request.topics += create_request([name], partition_count=partition_count(name)).topics
        with self._changed:
            self._ledger.pending.update(topic.name for topic in request.topics)
        client.send(request, 7)
        frame = client.read_frame()
        if frame is None:
            raise EOFError
        self._note(frame)

    def _note(self, frame: bytes) -> None:
        # Flexible response header: correlation id and an empty set of tags.
        response, _ = CreateTopicsResponse.decode_from(frame, 5, 7)
        with self._changed:
            for topic in response.topics:
                self._note_topic(topic)
            self._ledger.requests_answered += 1
            self._answered += 1
            self._changed.notify_all()

    def _note_topic(self, topic: CreateTopicsResponse.CreatableTopicResult) -> None:
        if topic.error_code in IS_THERE:
            self._ledger.pending.discard(topic.name)
        if topic.error_code == ErrorCode.NONE:
            if topic.name in self._ledger.acknowledged:
                self._ledger.problems.append(f"{topic.name} was created twice")
            self._ledger.acknowledged[topic.name] = TopicFacts(topic.topic_id, topic.num_partitions)
        elif topic.error_code not in IS_THERE | ASK_AGAIN:
            self._ledger.problems.append(f"{topic.name}: error {topic.error_code}")

    def _note_problem(self, text: str) -> None:
        with self._changed:
            self._ledger.problems.append(text)
            self._changed.notify_all()


def partition_count(name: str) -> int:
    """Return how many partitions a topic is to have: 1 or 2, by its name's last digit."""
    return 1 + int(name.rpartition("-")[2])


pytestmark = pytest.mark.slow

ROUNDS: Final = int(os.environ.get("KVORUM_KILL_ROUNDS", "20"))
CLIENTS = 4
ANSWERS_MAX = 12
TOPIC_RECORD = re.compile(r'payload: (\{"type":"TOPIC_RECORD".*\})$', re.MULTILINE)
SETTINGS = {
    **QUICK,
    # Some of the kills shall meet a snapshot being written, or a segment that has just begun.
    "metadata.log.max.record.bytes.between.snapshots": "100000",
    "metadata.log.segment.bytes": str(8 << 20),
    # Everything is looked at in the end: hundreds of rounds write more than is kept otherwise.
    "metadata.max.retention.bytes": str(1 << 40),
}


class Killing:
    """Rounds of starting, creating and killing, and all that was learnt in them."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.ledger = Ledger()
        self.seen: dict[str, TopicFacts] = {}
        self._process = node.process
        self._dice = random.Random(7)

    def round(self, number: int) -> None:
        """Start the node, check what it holds, and kill it while clients create topics."""
        with self._process:
            self.check()
            stream = Stream(
                self.node.broker, label=f"round-{number}", clients=CLIENTS, ledger=self.ledger
            )
            stream.start()
            stream.wait_for_answers(self._dice.randint(1, ANSWERS_MAX))
            self._process.kill()
            stream.join()

    def check(self) -> None:
        """Everything acknowledged, and everything seen before, is there and the same."""
        found = read_topics(self.node.broker)
        expected = {**self.seen, **self.ledger.acknowledged}
        missing = expected.keys() - found.keys()
        assert not missing, f"acknowledged and gone: {sorted(missing)}"
        assert {name: found[name] for name in expected} == expected
        unasked = found.keys() - expected.keys() - self.ledger.pending
        assert not unasked, f"nobody asked for {sorted(unasked)}"
        self.seen = found

    def stop_in_order(self) -> None:
        """Start once more, check, and stop the node as an operator would."""
        with self._process:
            self.check()
            assert self._process.terminate().exit_code == 0


@pytest.fixture(scope="module")
def killed(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Killing:
    """A node that was killed in every round and then stopped in order."""
    node = Node(tmp_path_factory.mktemp("killed"), SETTINGS).format()
    killing = Killing(node)
    started = time.monotonic()
    for number in range(ROUNDS):
        killing.round(number)
    killing.stop_in_order()
    ledger = killing.ledger
    report(
        f"{ROUNDS} rounds in {time.monotonic() - started:.1f} s: {ledger.requests_answered} "
        f"requests answered, {len(ledger.acknowledged)} topics acknowledged, "
        f"{len(killing.seen)} there, {len(list(node.metadata_log.glob('*.checkpoint')))} snapshots"
    )
    return killing


def test_every_acknowledged_topic_outlives_every_kill(killed: Killing) -> None:
    assert len(killed.ledger.acknowledged) >= ROUNDS
    assert killed.seen.keys() >= killed.ledger.acknowledged.keys()
    ids = [facts.topic_id for facts in killed.seen.values()]
    assert len(set(ids)) == len(ids)


def _topics_in(text: str) -> list[str]:
    return [json.loads(payload)["data"]["name"] for payload in TOPIC_RECORD.findall(text)]


def _log_files(node: Node) -> list[Path]:
    return sorted(node.metadata_log.glob("*.log"))


def test_our_dump_has_each_topic_once(killed: Killing, capsys: pytest.CaptureFixture[str]) -> None:
    names: list[str] = []
    for file in _log_files(killed.node):
        assert main(["dump-log", "--cluster-metadata-decoder", "--files", str(file)]) == 0
        names += _topics_in(capsys.readouterr().out)
    assert sorted(names) == sorted(killed.seen)


def test_kafkas_dump_has_each_topic_once(killed: Killing, kafka_tools: ToolRunner) -> None:
    names: list[str] = []
    for file in _log_files(killed.node):
        dump = kafka_tools.dumped(file, "--cluster-metadata-decoder")
        assert "isvalid: false" not in dump
        names += _topics_in(dump)
    assert sorted(names) == sorted(killed.seen)


def test_kafkas_dump_reads_every_snapshot(killed: Killing, kafka_tools: ToolRunner) -> None:
    snapshots = sorted(killed.node.metadata_log.glob("*.checkpoint"))
    assert len(snapshots) > 1, "no snapshot was ever made"
    for file in snapshots:
        names = _topics_in(kafka_tools.dumped(file, "--cluster-metadata-decoder"))
        assert len(set(names)) == len(names)
        assert killed.seen.keys() >= set(names)


@pytest.mark.slow
def test_kills_while_it_starts(formatted: Node, tmp_path: Path) -> None:
    """Wherever a start is cut off, the next one goes on from there."""
    node = formatted.copy_to(tmp_path / "node", SETTINGS)
    moments = ["active controller", "broker is registered", "RECOVERY", "RUNNING"]
    for number, moment in enumerate([*moments, *moments]):
        process = node.process
        process.launch()
        process.wait_for_line(moment)
        process.kill()
        if number % 3 == 0:
            with node.process:
                assert create(node.broker, f"topic-{number}") == [ErrorCode.NONE]
    with node.process:
        assert read_topics(node.broker).keys() == {"topic-0", "topic-3", "topic-6"}
