"""Batches that are read in blocks are those that a look at each of them gives, in their order."""

from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.support.spark.small_logs import LOG_FOLDER, START_MS, control, random_batch

from kvorum.log_files.damage import Damage, DamageKind
from kvorum.log_files.find import METADATA_SEARCH, find_files
from kvorum.log_files.ranges import plan_ranges
from kvorum.metadata.record_frame import encode_record
from kvorum.spark.columnar.batch_block import BatchBlock, block_of
from kvorum.spark.columnar.field_places import Flags
from kvorum.spark.columnar.range_reader import (
    BlockOrDamage,
    chosen_blocks,
    read_blocks,
    read_range,
    usual_batches,
)
from kvorum.spark.columnar.record_places import have_one_of
from kvorum.spark.conditions import Condition
from kvorum.spark.damage_modes import Mode
from kvorum.spark.metadata_source.columns import COLUMNS, DAMAGE, DEFAULT_COLUMNS
from kvorum.spark.metadata_source.decoded_rows import decoded_rows
from kvorum.spark.metadata_source.filters import NO_FILTER
from kvorum.spark.metadata_source.query import Query
from kvorum.spark.metadata_source.range_rows import arrow_batches
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.records import ControlRecordType, RecordBatch, build_data_batch, read_batches

RANGE_READER: Any = import_module(read_range.__module__)
DAMAGED_LOGS = 250
UNKNOWN_TYPE = b"\x01\x7f\x00"


def made_batches(random: Random, count: int) -> list[bytes]:
    """Return batches of a log without gaps, in which epochs rise and control batches come up."""
    parts: list[bytes] = []
    offset, epoch = 0, 1
    for _ in range(count):
        if random.random() < 0.2:
            epoch += random.randrange(1, 3)
            leader = LeaderChangeMessage(leader_id=random.randrange(3))
            kind = ControlRecordType.LEADER_CHANGE
            parts.append(control(kind, leader, offset=offset, epoch=epoch))
        elif random.random() < 0.1:
            values = [encode_record(NoOpRecord(), 0), UNKNOWN_TYPE]
            random.shuffle(values)
            parts.append(
                build_data_batch(values, base_offset=offset, epoch=epoch, timestamp_ms=START_MS)
            )
        else:
            parts.append(random_batch(random, offset=offset, epoch=epoch, time=START_MS))
        offset = next(read_batches(parts[-1])).next_offset
    return parts


def write_segments(folder: Path, parts: list[bytes], random: Random) -> list[Path]:
    inner = folder / LOG_FOLDER
    inner.mkdir(parents=True)
    middle = random.randrange(1, len(parts))
    paths: list[Path] = []
    for segment in (parts[:middle], parts[middle:]):
        paths.append(inner / f"{next(read_batches(segment[0])).base_offset:020}.log")
        paths[-1].write_bytes(b"".join(segment))
    return paths


def spoil(paths: list[Path], random: Random) -> None:
    """Flip bits, leave out a batch, repeat one, or put one of the next segment at the end."""
    path = random.choice(paths)
    data = bytearray(path.read_bytes())
    batches = list(read_batches(bytes(data)))
    one, other = random.choice(batches), random.choice(batches)
    choice = random.randrange(6)
    if choice == 0:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    elif choice == 1:
        # The low bits of the epoch: it rises or falls by little.
        data[one.position + 15] ^= 1 << random.randrange(3)
    elif choice == 2:
        data[one.position + random.randrange(21)] ^= 1 << random.randrange(8)
    elif choice == 3:
        del data[one.position : one.position + one.size]
    elif choice == 4:
        path = paths[0]
        data = bytearray(path.read_bytes()) + next(read_batches(paths[1].read_bytes())).data
    else:
        data[other.position : other.position] = one.data
    path.write_bytes(data)


def items_of(folder: Path) -> list[Any]:
    """Return all batches, with a copy of their bytes, and damage, of all files."""
    units = plan_ranges(find_files([str(folder)], METADATA_SEARCH))
    return [
        item if isinstance(item, Damage) else (item[:-1], bytes(item.data))
        for unit in units
        for item in read_range(unit)
    ]


def none_is_usual(data: memoryview, position: int, expected: Any) -> BatchBlock:
    return usual_batches(data, position, expected).between(0, 0)


@pytest.mark.parametrize("block_bytes", [100, 1000, 2**20])
def test_no_damage_is_reported_in_another_way_by_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(RANGE_READER, "USUAL_BYTES_MIN", block_bytes)
    damaged = 0
    for seed in range(DAMAGED_LOGS):
        random = Random(seed)
        folder = tmp_path / str(seed)
        paths = write_segments(folder, made_batches(random, 30), random)
        if seed % 20:
            spoil(paths, random)
        in_blocks = items_of(folder)
        with monkeypatch.context() as patched:
            patched.setattr(RANGE_READER, "usual_batches", none_is_usual)
            assert in_blocks == items_of(folder), seed
        damaged += any(isinstance(item, Damage) for item in in_blocks)
    assert DAMAGED_LOGS * 0.7 < damaged < DAMAGED_LOGS


def test_nearly_all_batches_of_a_sound_segment_are_read_together(tmp_path: Path) -> None:
    random = Random(1)
    write_segments(tmp_path, made_batches(random, 600), random)
    units = plan_ranges(find_files([str(tmp_path)], METADATA_SEARCH))
    items = [item for unit in units for item in read_blocks(unit)]
    blocks = [item for item in items if isinstance(item, BatchBlock)]
    assert sum(block.batch_count for block in blocks) > 580
    assert len(items) < 30


def test_batches_that_are_not_usual_cost_no_second_look_at_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each second batch begins at a higher offset than it should, as the next one confirms."""
    values = [encode_record(NoOpRecord(), 0)]
    inner = tmp_path / LOG_FOLDER
    inner.mkdir()
    parts: list[bytes] = []
    offset = 0
    for index in range(3000):
        offset += index % 2
        parts.append(build_data_batch(values, base_offset=offset, epoch=1, timestamp_ms=START_MS))
        offset += 1
    (inner / f"{0:020}.log").write_bytes(b"".join(parts))
    verified = 0
    crc32c = RANGE_READER.crc32c

    def counted(data: memoryview) -> int:
        nonlocal verified
        verified += len(data)
        return int(crc32c(data))

    monkeypatch.setattr(RANGE_READER, "crc32c", counted)
    (unit,) = plan_ranges(find_files([str(inner)], METADATA_SEARCH))
    assert sum(isinstance(item, Damage) for item in read_range(unit)) > 1400
    assert 0 < verified < 3000 * RANGE_READER.USUAL_BYTES_MIN


def mixed(random: Random, batches: list[RecordBatch]) -> Iterator[BlockOrDamage]:
    """Yield batches one by one and in blocks that have bytes of others, and damage."""
    while batches:
        count = random.choice([1, 1, 3, 20])
        some, batches = batches[:count], batches[count:]
        if count == 1:
            yield some[0]
        else:
            around = block_of([*batches[-1:], *some])
            yield around.where(np.arange(around.batch_count) >= around.batch_count - len(some))
        if random.random() < 0.1:
            yield Damage(DamageKind.DAMAGED, "path", some[0].position, 0, None, "a reason")


@pytest.mark.parametrize("joined_bytes", [0, 500, 5000, 2**30])
def test_batches_that_are_chosen_stay_in_their_order_among_damage(
    monkeypatch: pytest.MonkeyPatch, joined_bytes: int
) -> None:
    monkeypatch.setattr(RANGE_READER, "BLOCK_BYTES_MIN", joined_bytes)
    monkeypatch.setattr(RANGE_READER, "JOINED_BYTES_MIN", 3 * joined_bytes)

    def is_chosen(batch: RecordBatch) -> bool:
        return batch.base_offset % 3 != 0

    def choose(block: BatchBlock) -> Flags:
        return np.array([is_chosen(batch) for batch in block.batches()], np.bool_)

    batches = list(read_batches(b"".join(made_batches(Random(3), 200))))
    expected: list[Any] = []
    for item in mixed(Random(4), batches):
        if isinstance(item, Damage):
            expected.append(item)
        else:
            each = item.batches() if isinstance(item, BatchBlock) else [item]
            expected += [(one[:-1], bytes(one.data)) for one in each if is_chosen(one)]
    found: list[Any] = []
    for item in chosen_blocks(mixed(Random(4), batches), choose):
        if isinstance(item, Damage):
            found.append(item)
        else:
            found += [(one[:-1], bytes(one.data)) for one in item.batches()]
    assert found == expected
    assert sum(isinstance(item, Damage) for item in found) > 3


def test_rows_of_blocks_are_those_of_records_decoded_one_by_one(tmp_path: Path) -> None:
    """Control batches and records of an unknown type are among the others."""
    random = Random(8)
    (first, second) = write_segments(tmp_path, made_batches(random, 300), random)
    wanted = frozenset(column.name for column in DEFAULT_COLUMNS)
    expected: list[tuple[Any, ...]] = []
    for path in (first, second):
        for batch in read_batches(path.read_bytes()):
            for row in decoded_rows(str(path), batch, wanted):
                if isinstance(row, Damage):
                    expected.append((row.first_offset, None, row.text))
                else:
                    expected.append((row["offset"], row["type"], None))
    columns = (COLUMNS["offset"], COLUMNS["type"], COLUMNS["topic_id"], COLUMNS[DAMAGE])
    query = Query(columns, NO_FILTER, Mode.PERMISSIVE, {})
    units = plan_ranges(find_files([str(tmp_path)], METADATA_SEARCH))
    rows = [
        row for unit in units for part in arrow_batches(unit, query) for row in part.to_pylist()
    ]
    found = [(row["offset"], row["type"], row[DAMAGE]) for row in rows]
    assert found == expected
    assert sum(text is not None for _, _, text in found) > 10
    assert sum(name == "LEADER_CHANGE" for _, name, _ in found) > 30


def test_needles_are_found_in_the_stretches_that_have_them() -> None:
    random = Random(5)
    for _ in range(500):
        content = bytes(random.choice(b"ab") for _ in range(random.randrange(1, 60)))
        cuts = sorted(random.sample(range(len(content) + 1), random.randrange(1, len(content) + 1)))
        stretches = [stretch for stretch in pairwise(cuts) if random.random() < 0.8]
        starts, ends = (np.array([each[i] for each in stretches], np.int64) for i in (0, 1))
        needles = [
            bytes(random.choice(b"abc") for _ in range(random.choice([0, 1, 2, 2, 3, 5])))
            for _ in range(random.randrange(3))
        ]
        expected = [any(one in content[start:end] for one in needles) for start, end in stretches]
        assert have_one_of(content, starts, ends, needles).tolist() == expected


def test_many_bounds_are_judged_as_each_alone() -> None:
    random = Random(6)

    def number() -> int | None:
        return random.choice([None, random.randrange(10)])

    for _ in range(500):
        values = frozenset(random.sample(range(10), random.randrange(4)))
        condition = Condition(random.choice([None, values]), number(), number())
        lows = [random.randrange(10) for _ in range(20)]
        highs = [low + random.randrange(3) for low in lows]
        pairs = list(zip(lows, highs, strict=True))
        together = condition.may_match_each(np.array(lows), np.array(highs))
        assert together.tolist() == [condition.may_match(*pair) for pair in pairs]
        unknown = condition.may_match_each(None, np.array(highs))
        assert unknown.tolist() == [condition.may_match(None, high) for high in highs]
