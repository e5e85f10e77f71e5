"""The share coordinator: Kafka's own shard and ours, step by step, and its combiner of batches."""

import re
from collections import Counter
from contextlib import suppress
from random import Random
from typing import Final

import pytest
from tests.interop.line_oracle import Oracle, line_oracle
from tests.interop.share_coordinator_driver import Driver, batches_text
from tests.interop.share_coordinator_script import Script, random_batches
from tests.support.kafka.java import Java

from kvorum.share_coordinator.persister_state_batch import PersisterStateBatch
from kvorum.share_coordinator.persister_state_batch_combiner import (
    DisorderedBatchError,
    combined_state_batches,
)
from kvorum.share_coordinator.settings import ShareCoordinatorSettings

SCRIPTS: Final = 60
STEPS: Final = 250
COMBINATIONS: Final = 20_000
STEPS_SHOWN: Final = 12
ORACLE: Final = "ShareCoordinatorOracle"
_RECORD_TYPE: Final = re.compile(r"(?<= )(000[01])\w+:(~?)")


class Comparison:
    """Kafka's shard and ours, which must answer each step alike."""

    def __init__(self, oracle: Oracle, settings: ShareCoordinatorSettings) -> None:
        self._oracle = oracle
        self._steps: list[str] = []
        self.kinds: Counter[str] = Counter()
        """The number of occurrences of each kind of step, record and code."""
        limit = settings.update_records_per_snapshot
        interval_ms = settings.cold_partition_snapshot_interval_ms
        oracle.answer(
            f"new share.coordinator.snapshot.update.records.per.snapshot={limit} "
            f"share.coordinator.cold.partition.snapshot.interval.ms={interval_ms}"
        )
        self.driver = Driver(settings)

    def step(self, line: str) -> None:
        """Have both do a step."""
        self._steps.append(line)
        theirs = self._oracle.answer(line)
        ours = self.driver.answer(line)
        assert ours == theirs, "\n".join(self._steps[-STEPS_SHOWN:])
        response, records, state = ours.split(" | ")
        kind = line.partition(" ")[0]
        self.kinds[kind] += 1
        for type_id, tombstone in _RECORD_TYPE.findall(f" {records}"):
            self.kinds[f"{kind} record {type_id}{tombstone}"] += 1
        if response.startswith("error"):
            self.kinds[response] += 1
        if not state.startswith("~"):
            self.kinds["redundant"] += 1


def _settings(random: Random) -> ShareCoordinatorSettings:
    return ShareCoordinatorSettings(
        update_records_per_snapshot=random.choice((0, 1, 3, 10, 500)),
        cold_partition_snapshot_interval_ms=random.choice((1, 1000, 20_000)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_each_step_gives_what_kafka_gives(java: Java, seed: int) -> None:
    random = Random(seed)
    kinds: Counter[str] = Counter()
    with line_oracle(java, ORACLE) as oracle:
        for _ in range(SCRIPTS):
            both = Comparison(oracle, _settings(random))
            script = Script(random, both.driver)
            for _ in range(STEPS):
                both.step(script.step())
            kinds += both.kinds
    wanted = (
        *("initialize record 0000", "write record 0000", "write record 0001", "read record 0000"),
        *("read record 0001", "delete record 0000~", "cold record 0000", "topics record 0000~"),
        *("error -1", "redundant"),
    )
    assert min(kinds[one] for one in wanted) > SCRIPTS // 10, kinds


def _combined(random: Random, span: int) -> tuple[PersisterStateBatch, ...]:
    """Return several batches that have been combined."""
    while True:
        with suppress(DisorderedBatchError):
            found = combined_state_batches((), random_batches(random, span, 40), -1)
            if len(found) > 1:
                return found


def test_batches_are_combined_as_kafka_combines_them(java: Java) -> None:
    random = Random(7)
    kinds: Counter[str] = Counter()
    with line_oracle(java, ORACLE) as oracle:
        for _ in range(COMBINATIONS):
            span = random.choice((5, 30, 1000))
            so_far = tuple(random_batches(random, span, 6))
            new = random_batches(random, span, 6)
            start_offset = random.choice((-1, 0, random.randrange(span)))
            are_combined = random.random() < 0.5
            if are_combined:
                so_far = _combined(random, span)
            try:
                found = combined_state_batches(so_far, new, start_offset, are_combined=are_combined)
                ours = batches_text(found)
            except DisorderedBatchError:
                ours = "error"
            line = f"combine {start_offset} {batches_text(so_far)} {batches_text(new)}"
            assert ours == oracle.answer(line), line
            kinds["error" if ours == "error" else str(ours.count(","))] += 1
    assert min(kinds["error"], kinds["0"], kinds["8"]) > COMBINATIONS // 1000, kinds
