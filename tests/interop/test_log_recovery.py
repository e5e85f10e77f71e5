"""Logs that a crash has left, opened by Kafka's broker and by ours."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, Self

import pytest
from tests.interop.damaged_logs import (
    NOW_MS,
    Found,
    LogMaker,
    Shape,
    copied,
    damage,
    epochs_of_batches,
    found_in,
    opened,
)
from tests.support.kafka.java import Java

from kvorum.storage.errors import CorruptFileError
from kvorum.storage.names import parse_offset_name

LOGS: Final = 150
MORE_LOGS: Final = 700
REFUSED: Final = "!"


class Case(NamedTuple):
    """A log with its damage, in two copies."""

    shape: Shape
    damage: str
    ours: Path
    theirs: Path

    @classmethod
    def make(cls, seed: int, root: Path) -> Self:
        random = Random(seed)
        ours = root / f"{seed}-ours" / "topic-0"
        ours.parent.mkdir()
        shape = LogMaker(random, ours).make()
        done = damage(ours, random, had_clean_shutdown=shape.had_clean_shutdown)
        return cls(shape, done, ours, copied(ours, root / f"{seed}-theirs" / "topic-0"))

    @property
    def line(self) -> str:
        """The line for the Java program."""
        shape = self.shape
        parts = (
            self.theirs,
            shape.log_start_offset,
            shape.recovery_point,
            str(shape.had_clean_shutdown).lower(),
            shape.segment_bytes,
            "compact" if shape.is_compacted else "delete",
            NOW_MS,
        )
        return " ".join(map(str, parts))

    def verdict(self, theirs: str) -> str:
        """Open and read our copy; return how that relates to the answer of the Java program."""
        if theirs.startswith(REFUSED):
            return "Kafka refused"
        expected = Found.parse(theirs)
        loses = expected.log_end_offset < self.shape.recovery_point
        try:
            log = opened(self.ours, self.shape)
            try:
                assert list(log.local_log.epoch_starts) == epochs_of_batches(log)
                found = Found.parse(found_in(log))
            finally:
                log.local_log.abandon()
        except CorruptFileError as error:
            return "ours refused" if loses or self._was_durable(error.file) else f"differs: {error}"
        # Without a snapshot, Kafka takes an end in good order for one without producers.
        if found.is_like(expected, may_know_more=self.shape.had_clean_shutdown):
            return "same"
        return "Kafka lost what was durable" if loses else f"differs: {found}"

    def _was_durable(self, file: Path | None) -> bool:
        """Return whether a file is of a segment that begins below the recovery point."""
        parsed = None if file is None else parse_offset_name(file.name)
        return parsed is not None and parsed[0] < self.shape.recovery_point


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(LOGS), id="some"),
        pytest.param(range(LOGS, MORE_LOGS), id="more", marks=pytest.mark.slow),
    ],
)
def test_a_log_after_a_crash_is_the_one_that_kafka_finds(
    java: Java, tmp_path: Path, seeds: range
) -> None:
    """Ours refuses a log that was damaged below its recovery point, which Kafka cuts or serves."""
    cases = [Case.make(seed, tmp_path) for seed in seeds]
    answers = java.answers("LogLoaderOracle", asked=[case.line for case in cases])
    verdicts = [case.verdict(theirs) for case, theirs in zip(cases, answers, strict=True)]
    differing = [
        (seed, case, theirs, verdict)
        for seed, case, theirs, verdict in zip(seeds, cases, answers, verdicts, strict=True)
        if verdict.startswith("differs")
    ]
    assert differing == []
    seen = Counter(verdicts)
    assert seen["same"] > len(seeds) * 4 // 5, seen
