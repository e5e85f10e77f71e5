"""Retention: Kafka's own log and ours remove the same segments at the same time."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.interop.cleaned_logs import SETTINGS, START_MS, OurLog, asked
from tests.support.kafka.java import Java

from kvorum.wire.records import BatchOptions, RecordData, build_batch

LOGS: Final = 80
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
    lines = [line for _ in range(LOGS) for line in steps(random)]
    answers = asked(java, tmp_path, lines)
    ours = OurLog(tmp_path)
    deleted: Counter[str] = Counter()
    for line, theirs in zip(lines, answers, strict=True):
        assert ours.answer(line) == theirs, line
        if line == "retain":
            deleted[theirs.split(" ")[1]] += 1
            if theirs.split(" ")[2] == theirs.split(" ")[3]:
                deleted["all"] += 1
    assert min(deleted[one] for one in ("0", "1", "2", "all")) > LOGS // 5, deleted
