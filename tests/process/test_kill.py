"""``kill -9`` in the middle of a stream of CreateTopics, many times on the same data."""

import json
import random
import re
import time
from pathlib import Path

import pytest
from tests.process.workload import Ledger, Stream
from tests.support.combined_node import CombinedNode, format_node
from tests.support.fixtures import Report
from tests.support.kafka.tools import ToolRunner
from tests.support.topics import TopicFacts, create, read_topics

from kvorum.cli import main
from kvorum.wire.error_codes import ErrorCode

pytestmark = pytest.mark.slow

ROUNDS = 50
CLIENTS = 4
ANSWERS_MAX = 12
TOPIC_RECORD = re.compile(r'payload: (\{"type":"TOPIC_RECORD".*\})$', re.MULTILINE)
# Some of the kills shall meet a snapshot being written.
OVERRIDES = {"metadata.log.max.record.bytes.between.snapshots": "100000"}


class Killing:
    """Rounds of starting, creating and killing, and all that was learnt in them."""

    def __init__(self, node: CombinedNode) -> None:
        self.node = node
        self.ledger = Ledger()
        self.seen: dict[str, TopicFacts] = {}
        self._process = node.process()
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
    formatted = format_node(tmp_path_factory.mktemp("formatted") / "node")
    node = formatted.copy_to(tmp_path_factory.mktemp("killed") / "node", OVERRIDES)
    killing = Killing(node)
    started = time.monotonic()
    for number in range(ROUNDS):
        killing.round(number)
    killing.stop_in_order()
    ledger = killing.ledger
    report(
        f"{ROUNDS} rounds in {time.monotonic() - started:.1f} s: {ledger.requests_answered} "
        f"requests answered, {len(ledger.acknowledged)} topics acknowledged, "
        f"{len(killing.seen)} there, {_snapshot_count(node)} snapshots"
    )
    return killing


def _snapshot_count(node: CombinedNode) -> int:
    return len(list(node.log.parent.glob("*.checkpoint")))


def test_every_acknowledged_topic_outlives_every_kill(killed: Killing) -> None:
    assert len(killed.ledger.acknowledged) >= ROUNDS
    assert killed.seen.keys() >= killed.ledger.acknowledged.keys()
    ids = [facts.topic_id for facts in killed.seen.values()]
    assert len(set(ids)) == len(ids)


def _topics_in(text: str) -> list[str]:
    return [json.loads(payload)["data"]["name"] for payload in TOPIC_RECORD.findall(text)]


def _log_files(node: CombinedNode) -> list[Path]:
    return sorted(node.log.parent.glob("*.log"))


def test_our_dump_has_each_topic_once(killed: Killing, capsys: pytest.CaptureFixture[str]) -> None:
    names: list[str] = []
    for file in _log_files(killed.node):
        assert main(["dump-log", "--cluster-metadata-decoder", "--files", str(file)]) == 0
        names += _topics_in(capsys.readouterr().out)
    assert sorted(names) == sorted(killed.seen)


def test_kafkas_dump_has_each_topic_once(killed: Killing, kafka_tools: ToolRunner) -> None:
    names: list[str] = []
    for file in _log_files(killed.node):
        arguments = ["--cluster-metadata-decoder", "--files", str(file)]
        dump = kafka_tools.run("kafka-dump-log", *arguments)
        assert (dump.exit_code, dump.stderr) == (0, "")
        assert "isvalid: false" not in dump.stdout
        names += _topics_in(dump.stdout)
    assert sorted(names) == sorted(killed.seen)


def test_kafkas_dump_reads_every_snapshot(killed: Killing, kafka_tools: ToolRunner) -> None:
    snapshots = sorted(killed.node.log.parent.glob("*.checkpoint"))
    assert len(snapshots) > 1, "no snapshot was ever made"
    for file in snapshots:
        arguments = ["--cluster-metadata-decoder", "--files", str(file)]
        dump = kafka_tools.run("kafka-dump-log", *arguments)
        assert (dump.exit_code, dump.stderr) == (0, "")
        names = _topics_in(dump.stdout)
        assert len(set(names)) == len(names)
        assert killed.seen.keys() >= set(names)


@pytest.mark.slow
def test_kills_while_it_starts(formatted: CombinedNode, tmp_path: Path) -> None:
    """Wherever a start is cut off, the next one goes on from there."""
    node = formatted.copy_to(tmp_path / "node", OVERRIDES)
    moments = ["active controller", "broker is registered", "RECOVERY", "RUNNING"]
    for number, moment in enumerate([*moments, *moments]):
        process = node.process()
        process.launch()
        process.wait_for_line(moment)
        process.kill()
        if number % 3 == 0:
            with node.process():
                assert create(node.broker, f"topic-{number}") == [ErrorCode.NONE]
    with node.process():
        assert read_topics(node.broker).keys() == {"topic-0", "topic-3", "topic-6"}
