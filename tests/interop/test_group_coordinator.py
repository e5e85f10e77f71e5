"""Classic groups and offsets: Kafka's own GroupCoordinatorShard and ours, step by step."""

import re
import subprocess
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from random import Random
from typing import IO, Final

import pytest
from tests.interop.group_coordinator_driver import Driver
from tests.interop.group_coordinator_script import Script, old_record
from tests.support.kafka.java import Java

from kvorum.groups.settings import GroupCoordinatorSettings

SCRIPTS: Final = 60
STEPS: Final = 250
OLD_RECORDS: Final = 40
METADATA_MAX: Final = 10
RETENTION_MINUTES: Final = 2
_MEMBER_UUID: Final = re.compile(
    r"(?:client|i\d)-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
)
_COMMITTED_OFFSETS: Final = re.compile(r"( offsets \S*) offsets \S*")
_HEX: Final = re.compile(r"\b(?:[0-9a-f]{2}){8,}\b")


class Oracle:
    """Kafka's shard in a Java process; a line in, a line out."""

    def __init__(self, given: IO[str], answered: IO[str]) -> None:
        self._given = given
        self._answered = answered

    def answer(self, line: str) -> str:
        self._given.write(line + "\n")
        self._given.flush()
        answer = self._answered.readline()
        assert answer, f"the oracle ended at: {line}"
        return answer.rstrip("\n")


class MemberIds:
    """Has our shard make the random ids that Kafka's has made, as its answers show them."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._next: list[str] = []

    def learn(self, answer: str) -> None:
        texts = [answer]
        texts += (bytes.fromhex(one).decode("latin-1") for one in _HEX.findall(answer))
        found = dict.fromkeys(uuid for text in texts for uuid in _MEMBER_UUID.findall(text))
        self._next = [uuid for uuid in found if uuid not in self._seen]
        self._seen.update(found)

    def new_uuid(self) -> str:
        return self._next.pop()


@contextmanager
def _oracle(java: Java) -> Generator[Oracle]:
    command = java.program("GroupCoordinatorOracle")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Oracle(process.stdin, process.stdout)
        process.stdin.close()


def _new(oracle: Oracle, settings: GroupCoordinatorSettings, ids: MemberIds) -> Driver:
    oracle.answer(
        f"new {settings.group_max_size} {settings.group_initial_rebalance_delay_ms} "
        f"{METADATA_MAX} {RETENTION_MINUTES}"
    )
    return Driver(settings, ids.new_uuid)


def _without_committed(answer: str) -> str:
    """Drop the committed offsets of each group.

    After a removal was taken back because its append failed, Kafka's timeline maps lose entries of
    the committed snapshot when these are removed again; ours do not.
    """
    return _COMMITTED_OFFSETS.sub(r"\1", answer)


def _settings(random: Random) -> GroupCoordinatorSettings:
    return GroupCoordinatorSettings(
        group_max_size=random.choice((2, 4, 100)),
        group_initial_rebalance_delay_ms=random.choice((0, 3000, 8000)),
        offset_metadata_max_bytes=METADATA_MAX,
        offsets_retention_ms=RETENTION_MINUTES * 60_000,
    )


class Comparison:
    """Kafka's shard and ours under the same script."""

    def __init__(self, oracle: Oracle, random: Random) -> None:
        self._oracle = oracle
        self._ids = MemberIds()
        self.driver = _new(oracle, _settings(random), self._ids)
        self.script = Script(random, self.driver)
        self.kinds: Counter[str] = Counter()
        self._steps: list[str] = []

    def step(self, line: str) -> None:
        """Have both do a step; they must answer alike."""
        self._steps.append(line)
        theirs = self._oracle.answer(line)
        self._ids.learn(theirs)
        ours = self.driver.answer(line)
        if self.driver.has_reverted:
            ours, theirs = _without_committed(ours), _without_committed(theirs)
        assert ours == theirs, "\n".join(self._steps[-12:])
        self.kinds[line.partition(" ")[0]] += 1
        self.kinds.update(f"state {one}" for one in re.findall(r" group \w+ (\w+)", ours))
        self.kinds.update(re.findall(r"^error -?\d+", ours))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_each_step_gives_what_kafka_gives(java: Java, seed: int) -> None:
    random = Random(seed)
    kinds: Counter[str] = Counter()
    with _oracle(java) as oracle:
        for _ in range(SCRIPTS):
            both = Comparison(oracle, random)
            for _ in range(STEPS):
                both.step(both.script.step())
            both.step("unload")
            kinds += both.kinds
    wanted = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable")
    assert min(kinds[f"state {one}"] for one in wanted) > SCRIPTS, kinds
    errors = ("error 25", "error 27", "error 22", "error 69")
    assert min(kinds[one] for one in errors) > SCRIPTS // 10, kinds


def test_records_of_every_version_load_as_kafka_loads_them(java: Java) -> None:
    random = Random(5)
    kinds: Counter[str] = Counter()
    with _oracle(java) as oracle:
        for _ in range(SCRIPTS):
            both = Comparison(oracle, random)
            for _ in range(OLD_RECORDS):
                both.step(old_record(random) if random.random() < 0.9 else "marker 7 commit")
            both.step("load")
            for _ in range(OLD_RECORDS):
                both.step(both.script.step())
            kinds += both.kinds
    assert kinds["state Stable"] > SCRIPTS
