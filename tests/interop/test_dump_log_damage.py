"""Files with random damage: ``kvorum dump-log`` shows what kafka-dump-log does, if it goes on."""

import random
import re
import shutil
from pathlib import Path

import pytest
from tests.support.dump_log import dump
from tests.support.kafka.tools import ToolRunner

SUFFIXES = (".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot")
SEEDS = range(8)
FILES_PER_SEED = 40
# Damaged files that Kafka's tool reads to their end and ours does not.
GIVEN_UP_MAX = 3
# Each side says in its own words why a snapshot of producers cannot be read.
OWN_WORDS = "Snapshot failed schema validation: "
NULL_SIZE = re.compile(r"Size: -[0-9]+")


def damaged(data: bytes, randomness: random.Random) -> bytes:
    """Flip bits, as a rule; else cut the file or let something follow."""
    changed = bytearray(data)
    kind = randomness.random()
    if kind < 0.7:
        for _ in range(randomness.choice([1, 1, 1, 2, 5])):
            changed[randomness.randrange(len(changed))] ^= 1 << randomness.randrange(8)
    elif kind < 0.85:
        del changed[randomness.randrange(len(changed)) :]
    else:
        changed += randomness.randbytes(randomness.randrange(1, 80))
    return bytes(changed)


def spoiled_copy(golden_sets: Path, folder: Path, randomness: random.Random) -> Path:
    """Copy a segment with its neighbours, damage one of the files, and return that."""
    files = [
        path
        for path in sorted(golden_sets.rglob("*"))
        if path.suffix in SUFFIXES and 0 < path.stat().st_size < 1_000_000
    ]
    source = randomness.choice(files)
    target = folder / source.parent.name
    shutil.copytree(source.parent, target, ignore=shutil.ignore_patterns("dumps"))
    file = target / source.name
    file.write_bytes(damaged(source.read_bytes(), randomness))
    return file


def shown(text: str) -> list[str]:
    """Return the lines; null of format 0 or 1 has any negative length, which ours prints as -1."""
    return NULL_SIZE.sub("Size: -1", text).splitlines()


def lines_but_own_words(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith(OWN_WORDS)]


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_files_are_shown_alike(
    golden_sets: Path,
    tmp_path: Path,
    seed: int,
    kafka_tools: ToolRunner,
    capsys: pytest.CaptureFixture[str],
) -> None:
    randomness = random.Random(seed)
    given_up = 0
    for number in range(FILES_PER_SEED):
        file = spoiled_copy(golden_sets, tmp_path / str(number), randomness)
        arguments = ["--files", str(file)]
        arguments += randomness.choice([[], ["--deep-iteration"], ["--print-data-log"]])
        ours = dump(capsys, *arguments)
        theirs = kafka_tools.run("kafka-dump-log", *arguments)
        if ours.exit_code == 0:
            assert theirs.exit_code == 0, (arguments, theirs.stderr)
            assert shown(ours.stdout) == shown(theirs.stdout), arguments
            assert lines_but_own_words(ours.stderr) == lines_but_own_words(theirs.stderr)
        else:
            given_up += ours.exit_code - theirs.exit_code
            # Kafka goes on where it does not look: formats to come, text that is not UTF-8. Within
            # the batch where both end, either may get further.
            first, second = shown(ours.stdout), shown(theirs.stdout)[: -theirs.exit_code or None]
            common = min(len(first) - 1, len(second))
            assert first[:common] == second[:common], arguments
            assert ours.stderr.count("\n") == 1, "one line"
        shutil.rmtree(tmp_path / str(number))
    assert given_up <= GIVEN_UP_MAX
