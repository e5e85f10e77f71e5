"""Compaction and retention: Kafka's own log and ours make, and remove, the same files."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.interop.cleaned_logs import SETTINGS, START_MS, OurLog, Script, asked, comparable, latest
from tests.support.kafka.java import Java

from kvorum.wire.records import BatchOptions, Compression, RecordBatch, RecordData, build_batch
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
    assert min(seen[one] for one in PECULIARITIES[: -1 if is_packed else None]) > LOGS // 6, seen


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


CUT_LOGS: Final = 80
STEPS: Final = 60
HOUR_MS: Final = 3_600_000


def steps(random: Random) -> Iterator[str]:
    """Yield the life of a log that is cut at its beginning, in all ways at once."""
    settings = {
        **SETTINGS,
        "internal.segment.bytes": 400,
        "cleanup.policy": random.choice(("delete", "delete", "compact", "compact,delete")),
        "retention.ms": random.choice((-1, 0, 2000, 2000)),
        "retention.bytes": random.choice((-1, -1, 0, 500, 1500)),
        "max.compaction.lag.ms": 2**63 - 1,
        "segment.ms": random.choice((3000, HOUR_MS)),
    }
    now, offset, watermark, start = START_MS, 0, 0, 0
    yield f"time {now}"
    yield "new " + " ".join(f"{name}={value}" for name, value in settings.items())
    for _ in range(STEPS):
        now += random.choice((0, 100, 500))
        yield f"time {now}"
        kind = random.random()
        if kind < 0.1:
            yield "roll"
        elif kind < 0.15:
            start = random.randint(start, watermark)
            yield f"start {start}"
        elif kind < 0.35:
            yield "retain"
            yield "dump"
        else:
            time = random.choice((now, now, now - 1500, now + HOUR_MS, -1))
            records = [RecordData(bytes(random.randrange(60)), b"k", time) for _ in range(2)]
            options = BatchOptions(base_offset=offset, partition_leader_epoch=0)
            yield f"append {build_batch(records, options).hex()}"
            offset += 2
        # Without a timestamp a segment is as old as its file.
        yield f"modified {now - random.choice((0, 3000))}"
        if random.random() < 0.7:
            watermark = random.randint(max(start, offset - 6), offset)
            yield f"watermark {watermark}"


@pytest.mark.slow
def test_old_segments_go_as_with_kafka(java: Java, tmp_path: Path) -> None:
    random = Random(12)
    lines = [line for _ in range(CUT_LOGS) for line in steps(random)]
    answers = asked(java, tmp_path, lines)
    ours = OurLog(tmp_path)
    deleted: Counter[str] = Counter()
    for line, theirs in zip(lines, answers, strict=True):
        assert ours.answer(line) == theirs, line
        if line == "retain":
            deleted[theirs.split(" ")[1]] += 1
            if theirs.split(" ")[2] == theirs.split(" ")[3]:
                deleted["all"] += 1
    assert min(deleted[one] for one in ("0", "1", "2", "all")) > CUT_LOGS // 5, deleted
