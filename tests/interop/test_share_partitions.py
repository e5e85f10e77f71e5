"""Records in flight of share partitions: Kafka's own SharePartition and ours, step by step."""

import re
from collections import Counter
from random import Random
from typing import Final

import pytest
from tests.interop.line_oracle import Oracle, line_oracle
from tests.interop.share_partition_driver import Driver
from tests.interop.share_partition_script import Script
from tests.support.kafka.java import Java

from kvorum.broker.share_partition.record_state import RecordState

SCRIPTS: Final = 60
STEPS: Final = 250
STEPS_SHOWN: Final = 12
ENDINGS: Final = ("broken", "stuck")
ORACLE: Final = "SharePartitionOracle"
_ERROR: Final = re.compile(r"\b\d+:(-?\d+)=")
_OFFSETS: Final = re.compile(r"ACTIVE (?P<start>\d+)-\d+ .* next (?P<next>\d+)")
_UNGUARDED: Final = re.compile(r"[=\[,]0/\d+//\d+!?(?![\d!~])")
"""An available record with a lock: its transition was forgotten when its batch was split."""
_STATE: Final = re.compile(r"[=\[,](\d)/")


class Comparison:
    """Kafka's share partition and ours, which must answer each step alike.

    That ends where Kafka's own code breaks, or can fetch nothing but what the log has lost.
    """

    def __init__(self, oracle: Oracle, random: Random) -> None:
        self._oracle = oracle
        self._steps: list[str] = []
        self.is_over = False
        self.kinds: Counter[str] = Counter()
        """The number of occurrences of each kind of step, state and error."""
        first = Script(random, Driver("new 20 5 3000 1 0")).settings_line("new")
        oracle.answer(first)
        self._steps.append(first)
        self.driver = Driver(first)
        self.script = Script(random, self.driver)

    def play(self, steps: int) -> None:
        """Have both do the first steps of the script, and then as many as they can."""
        for line in self.script.first_steps():
            self.step(line)
        while steps and not self.is_over:
            self.step(self.script.step())
            steps -= 1

    def step(self, line: str) -> None:
        """Have both do a step."""
        self._steps.append(line)
        theirs = self._oracle.answer(line)
        ours = self.driver.answer(line)
        if ours != theirs:
            broken = _what_is_broken(theirs)
            assert broken is not None, "\n".join(self._steps[-STEPS_SHOWN:])
            self.kinds[broken] += 1
            self.is_over = True
            return
        self.kinds[line.partition(" ")[0]] += 1
        self.kinds.update(f"error {one}" for one in _ERROR.findall(ours))
        state = ours.rpartition(" | ")[2]
        self.kinds.update(f"state {one}" for one in set(_STATE.findall(state)))


def _what_is_broken(answer: str) -> str | None:
    """Return why Kafka's share partition cannot go on; None if it can."""
    if "broken" in answer:
        return answer.partition(" | ")[0] if answer.startswith("broken") else "broken start"
    if _UNGUARDED.search(answer):
        return "broken transition"
    found = _OFFSETS.search(answer)
    assert found is not None, answer
    return "stuck" if int(found["next"]) < int(found["start"]) else None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_each_step_gives_what_kafka_gives(java: Java, seed: int) -> None:
    random = Random(seed)
    kinds: Counter[str] = Counter()
    with line_oracle(java, ORACLE) as oracle:
        for _ in range(SCRIPTS):
            both = Comparison(oracle, random)
            both.play(STEPS)
            kinds += both.kinds
    steps = ("ack", "acquire", "copied", "release", "settings", "start", "time", "written")
    assert min(kinds[one] for one in steps) > SCRIPTS, kinds
    assert min(kinds[f"state {one.value}"] for one in RecordState) > 10 * SCRIPTS, kinds
    errors = (-1, 3, 6, 15, 42, 69, 121)
    assert min(kinds[f"error {one}"] for one in errors) > SCRIPTS // 10, kinds
    assert sum(kinds[one] for one in kinds if one.startswith(ENDINGS)) < SCRIPTS // 2, kinds
