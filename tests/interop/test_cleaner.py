"""Compaction: Kafka's own Cleaner and ours make the same files of the same log."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.interop.cleaned_logs import OurLog, Script, asked, comparable, latest
from tests.support.kafka.java import Java

from kvorum.wire.records import Compression, RecordBatch
from kvorum.wire.records.legacy import LegacyMessage, read_entries

LOGS: Final = 120
PECULIARITIES: Final = (
    *("aborted transaction", "empty batch", "gap", "gap within", "horizon"),
    *("marker with horizon", "several segments"),
)


def peculiarities(dump: str) -> Iterator[str]:
    """Yield what there is in a cleaned log, to show that the test has met it."""
    end_offset = 0
    for number, file in enumerate(dump.split(" ")):
        name, _, data = file.partition("=")
        if name.endswith(".txnindex") and data:
            yield "aborted transaction"
        if not name.endswith(".log"):
            continue
        if number > 8:
            yield "several segments"
        for batch in read_entries(bytes.fromhex(data)):
            if batch.base_offset > end_offset:
                yield "gap"
            end_offset = batch.next_offset
            if isinstance(batch, LegacyMessage):
                yield "old message"
            else:
                yield from peculiarities_of(batch)


def peculiarities_of(batch: RecordBatch) -> Iterator[str]:
    if batch.partition_leader_epoch < 0:
        yield "without epoch"
    if batch.record_count == 0:
        yield "empty batch"
    elif batch.record_count <= batch.last_offset_delta:
        yield "gap within"
    if batch.delete_horizon_ms is not None:
        yield "marker with horizon" if batch.is_control else "horizon"


@pytest.mark.slow
@pytest.mark.parametrize(
    "compressions", [(Compression.NONE,), tuple(Compression)], ids=["plain", "packed"]
)
def test_a_cleaned_log_is_the_one_that_kafka_leaves(
    java: Java, tmp_path: Path, compressions: tuple[Compression, ...]
) -> None:
    random = Random(534)
    is_packed = len(compressions) > 1
    lines = [
        line
        for _ in range(LOGS // 3 if is_packed else LOGS)
        for line in Script(random, compressions=compressions).steps()
    ]
    seen = cleaned_by_both(java, tmp_path, lines, is_packed=is_packed)
    wanted = PECULIARITIES[: -1 if is_packed else None]
    assert min(seen[one] for one in wanted) > LOGS // 6, seen


def test_messages_of_old_formats_become_the_batches_that_kafka_makes_of_them(
    java: Java, tmp_path: Path
) -> None:
    random = Random(10)
    lines = [
        line
        for _ in range(LOGS // 2)
        for line in Script(random, compressions=tuple(Compression), old_steps=30).steps()
    ]
    seen = cleaned_by_both(java, tmp_path, lines, is_packed=True)
    wanted = ("gap within", "horizon", "old message", "without epoch", "empty batch")
    assert min(seen[one] for one in wanted) > LOGS // 12, seen


def cleaned_by_both(
    java: Java, tmp_path: Path, lines: list[str], *, is_packed: bool
) -> Counter[str]:
    """Give Kafka's cleaner and ours the same to do; return what the cleaned logs have had."""
    answers = asked(java, tmp_path, lines)
    ours = OurLog(tmp_path)
    seen: Counter[str] = Counter()
    for line, theirs in zip(lines, answers, strict=True):
        before = latest(ours.answer("dump")) if line.startswith("clean") else {}
        found = ours.answer(line)
        if line == "dump":
            assert comparable(found, is_packed=is_packed) == comparable(theirs, is_packed=is_packed)
        elif line == "choose" and is_packed:
            assert found.split(" ")[:3] == theirs.split(" ")[:3], line
        else:
            assert found == theirs, line
        if theirs.startswith("cleaned"):
            ours.note_checkpoint(theirs)
            dump = ours.answer("dump")
            assert latest(dump) == before, line
            seen.update(peculiarities(dump))
    return seen
