"""Generated scripts on a real controller and on ours: equal answers, equal records.

``KVORUM_DIFFERENTIAL_SCRIPTS=n`` runs about n scripts instead of the quick set, and
``KVORUM_DIFFERENTIAL_SEED=s`` has each kind begin at another seed. A failure names kind and seed;
``KVORUM_DIFFERENTIAL_SHRINK=1`` drops the steps of failing scripts that do not matter.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest
from tests.interop.differential.comparing import Difference, Names, differences
from tests.interop.differential.harness import Outcome, Pair, shrink
from tests.interop.differential.kinds import FIRST_SEED, KINDS, QUICK_SCRIPTS, SCRIPTS
from tests.interop.differential.metadata_log import NO_OP, LogRecord
from tests.interop.differential.script import TIMEOUT_MS, Fields, Script, Step, heartbeat, started
from tests.interop.differential.sides import Side
from tests.interop.differential.view import ClusterView
from tests.support.dump_log import read_dump
from tests.support.kafka.java import TOOL_CLASSES, Java


def dumped(java: Java, log: Path, text: Path) -> list[LogRecord]:
    """Return the metadata records of a log as real Kafka's tool prints them."""
    options = ("--cluster-metadata-decoder", "--files", str(log))
    command = java.command(TOOL_CLASSES["kafka-dump-log"], *options)
    with text.open("wb") as out:
        subprocess.run(command, stdout=out, check=True)
    records = [
        LogRecord(record.offset, _name(record.type), record.version or 0, json.loads(record.json))
        for record in read_dump(text)
        if record.record_kind == "metadata" and record.json is not None
    ]
    return [record for record in records if record.type != NO_OP]


def _name(printed: str) -> str:
    """Return a record's name, which the tool prints as TOPIC_RECORD and the like."""
    return "".join(part.capitalize() for part in printed.split("_"))


class DumpedLog:
    """The records of one side's log, taken script by script."""

    def __init__(self, side: Side, records: Sequence[LogRecord], *, index: int) -> None:
        self._records = iter(records)
        self._next = next(self._records, None)
        self._index = index
        self._own = side.own_names
        self._view = ClusterView()

    def rows_of(self, outcome: Outcome) -> list[object]:
        """Return what each step of a script has written, as it is to be compared."""
        self._view.fold(self._before(outcome.start_offsets[self._index]))
        self._view.begin_script()
        names = Names(self._view, outcome.known_uuids, self._own)
        rows: list[object] = []
        for span in outcome.spans:
            records = list(self._before(span.end_offsets[self._index]))
            self._view.fold(records)
            rows.append(names.records(span.api, records, is_placed=span.is_placed))
        return rows

    def _before(self, offset: int) -> Iterator[LogRecord]:
        while self._next is not None and self._next.offset < offset:
            yield self._next
            self._next = next(self._records, None)


def dump_differences(
    java: Java, sides: tuple[Side, Side], outcomes: Sequence[Outcome]
) -> Iterator[tuple[str, Difference]]:
    """Yield where the logs differ, with the script's name; findings are not told again."""
    real, ours = (
        DumpedLog(side, dumped(java, side.log.path, side.node.folder / "dump.txt"), index=index)
        for index, side in enumerate(sides)
    )
    for outcome in outcomes:
        pair = real.rows_of(outcome), ours.rows_of(outcome)
        if not outcome.findings:
            for difference in differences(*pair, "records"):
                yield outcome.script.name, difference


MOST: Final = 10_000


def _topic(name: str, partitions: int) -> Fields:
    return {"name": name, "numPartitions": partitions, "replicationFactor": 1}


def _create(*topics: Fields) -> Step:
    return Step("CreateTopics", 7, {"topics": list(topics), "timeoutMs": TIMEOUT_MS})


def _add(*counts: tuple[str, int]) -> Step:
    rows = [{"name": name, "count": count, "assignments": None} for name, count in counts]
    return Step("CreatePartitions", 3, {"topics": rows, "timeoutMs": TIMEOUT_MS})


def crowded_requests() -> Script:
    """Return a script of requests that would write too much."""
    return _script(
        "crowded-requests",
        _create(_topic("a", MOST + 1)),
        _create(_topic("a", MOST // 2), _topic("b", MOST // 2 + 1)),
        # Not too many partitions, but with the topic's own record too many records.
        _create(_topic("a", MOST)),
        _create(_topic("small", 3), _topic("b", MOST - 3)),
    )


def crowded_broker() -> Script:
    """Return a script in which each change of one broker touches more than may be written."""
    return _script(
        "crowded-broker",
        _create(_topic("a", MOST - 1)),
        _create(_topic("b", 1)),
        _add(("b", 4)),
        Step("UnregisterBroker", 0, {"brokerId": 1}),
        Step("BrokerHeartbeat", 2, heartbeat(1, wantFence=True)),
        Step("BrokerHeartbeat", 2, heartbeat(1)),
        Step("ElectLeaders", 2, {"electionType": 0, "timeoutMs": TIMEOUT_MS}),
        Step("AlterPartitionReassignments", 1, {"timeoutMs": TIMEOUT_MS, "topics": _moves()}),
    )


def _moves() -> Sequence[Fields]:
    return [
        {
            "name": name,
            "partitions": [
                {"partitionIndex": index, "replicas": [1, 2]} for index in range(partitions)
            ],
        }
        for name, partitions in (("a", MOST - 1), ("b", 4))
    ]


def _script(kind: str, *steps: Step) -> Script:
    return Script(kind, 0, (*started(1), *steps))


IS_SHRINKING: Final = "KVORUM_DIFFERENTIAL_SHRINK" in os.environ
REPORTED_MAX: Final = 5

pytestmark = [pytest.mark.sample, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def pair(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both controllers, for all scripts one after the other."""
    with Pair(java, tmp_path_factory.mktemp("differential")) as pair:
        yield pair


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return []


def told(pair: Pair, outcome: Outcome) -> str:
    """Return the report of a failing script, made smaller if that is wanted."""
    if not IS_SHRINKING:
        return outcome.report()

    def still_fails(script: Script) -> bool:
        return bool(pair.run(script).findings)

    script = shrink(outcome.script, still_fails)
    return f"{pair.run(script).report()}\n{script.as_lines()}"


@pytest.mark.parametrize("kind", KINDS)
def test_answers_and_records_are_equal(pair: Pair, outcomes: list[Outcome], kind: str) -> None:
    count = -(-SCRIPTS // len(KINDS))
    made = [pair.run(KINDS[kind](FIRST_SEED + number)) for number in range(count)]
    outcomes.extend(made)
    failing = [outcome for outcome in made if outcome.findings]
    assert not failing, f"{len(failing)} of {count}:\n" + "\n".join(
        told(pair, outcome) for outcome in failing[:REPORTED_MAX]
    )
    # A script that writes nothing compares little.
    assert sum(outcome.record_count for outcome in made) > count


def test_what_one_request_may_write(pair: Pair, outcomes: list[Outcome]) -> None:
    scripts = [crowded_requests()]
    if SCRIPTS > QUICK_SCRIPTS:
        scripts.append(crowded_broker())
    made = [pair.run(script) for script in scripts]
    outcomes.extend(made)
    assert [outcome.report() for outcome in made if outcome.findings] == []


def test_the_logs_are_equal_as_kafkas_own_tool_prints_them(
    pair: Pair, outcomes: list[Outcome], java: Java
) -> None:
    pair.stop()
    assert list(dump_differences(java, pair.sides, outcomes))[:REPORTED_MAX] == []
    assert len(outcomes) >= min(SCRIPTS, len(KINDS))
