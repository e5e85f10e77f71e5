"""Damage of every kind is named with file and offset, and no gap is silent."""

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from tests.spark.spark_filters import flip
from tests.support.spark.small_logs import Reading, SmallLog, read_log, write_log

from kvorum.log_files.damage import Damage
from kvorum.wire.records import RecordBatch

CASES_OF_A_KIND = 260
ENDLESS = 2**62


def flip_header(log: SmallLog, random: Random) -> None:
    """Flip a bit in what a checksum does not cover, and the checksum itself."""
    name = random.choice(sorted(log.batches))
    data = bytearray((log.inner / name).read_bytes())
    position = random.choice(log.batches[name]).position
    data[position + random.randrange(21)] ^= 1 << random.randrange(8)
    (log.inner / name).write_bytes(data)


def cut(log: SmallLog, random: Random) -> None:
    path = log.inner / random.choice(sorted(log.batches))
    data = path.read_bytes()
    path.write_bytes(data[: random.randrange(len(data))])


def swap(log: SmallLog, random: Random) -> None:
    first, second = (log.inner / name for name in random.sample(sorted(log.batches), 2))
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)


def remove(log: SmallLog, random: Random) -> None:
    (log.inner / random.choice(sorted(log.batches))).unlink()


def double(log: SmallLog, random: Random) -> None:
    """Append a file to itself, repeat one of its batches, or copy it under another offset."""
    name = random.choice(log.segments)
    path = log.inner / name
    data = path.read_bytes()
    choice = random.randrange(3)
    if choice == 0:
        path.write_bytes(data + data)
    elif choice == 1:
        batch = random.choice(log.batches[name])
        path.write_bytes(data[: batch.position + batch.size] + data[batch.position :])
    else:
        last = max(batch.last_offset for batches in log.batches.values() for batch in batches)
        (log.inner / f"{random.randrange(1, last + 40):020}.log").write_bytes(data)


def content(batch: RecordBatch) -> bytes:
    """Return what the checksum covers."""
    return bytes(batch.data[21:])


def written(log: SmallLog, *, is_snapshot: bool) -> dict[int, tuple[int, bytes]]:
    names = log.snapshots if is_snapshot else log.segments
    batches = [batch for name in names for batch in log.batches[name]]
    return {
        offset: (batch.base_offset, content(batch))
        for batch in batches
        for offset in range(batch.base_offset, batch.next_offset)
    }


def found(reading: Reading, *, is_snapshot: bool) -> dict[int, tuple[int, bytes]]:
    rows: dict[int, tuple[int, bytes]] = {}
    for name, batch in reading.batches:
        if name.endswith(".checkpoint") == is_snapshot:
            for offset in range(batch.base_offset, batch.next_offset):
                assert offset not in rows, f"offset {offset} twice"
                rows[offset] = batch.base_offset, content(batch)
    return rows


def covered(damages: list[Damage], *, is_snapshot: bool) -> list[range]:
    return [
        range(each.first_offset, ENDLESS if each.last_offset is None else each.last_offset + 1)
        for each in damages
        if each.path.endswith(".checkpoint") == is_snapshot
    ]


def end_offset(log: SmallLog) -> int:
    """Return the end of what the files can show: whole batches of a last file may be gone."""
    last = max(log.inner.glob("*.log"))
    return 0 if not last.stat().st_size else ENDLESS


def check(log: SmallLog, reading: Reading, hidden: Callable[[int, bool], bool]) -> None:
    for is_snapshot in (False, True):
        rows = found(reading, is_snapshot=is_snapshot)
        expected = written(log, is_snapshot=is_snapshot)
        assert {o: rows[o] for o in rows} == {o: expected.get(o) for o in rows}, "a wrong row"
        gaps = covered(reading.damages, is_snapshot=is_snapshot)
        for offset in expected.keys() - rows.keys():
            named = any(offset in gap for gap in gaps)
            assert named or hidden(offset, is_snapshot), f"offset {offset} is missing in silence"
    for damage in reading.damages:
        assert Path(damage.path).parent == log.inner
        assert damage.reason
        assert 0 <= damage.position <= 2 * 10**5


def hidden_offsets(log: SmallLog) -> Callable[[int, bool], bool]:
    """Return which offsets can be missing without a trace in any byte that is left.

    These are whole batches at the end of the log, a whole snapshot, and segments that a snapshot
    stands in for.
    """
    names = {path.name for path in log.inner.iterdir()}
    snapshot = log.snapshots[0]
    covered_until = int(snapshot[:20]) if snapshot in names else 0
    left = sorted(name for name in names if name.endswith(".log"))
    first = int(left[0][:20]) if left else ENDLESS
    last_base = int(left[-1][:20]) if left else 0
    size = (log.inner / left[-1]).stat().st_size if left else 0
    end = last_base
    for batch in log.batches.get(left[-1] if left else "", []):
        if batch.position + batch.size <= size:
            end = batch.next_offset

    def is_hidden(offset: int, is_snapshot: bool) -> bool:
        if is_snapshot:
            return snapshot not in names
        return offset >= end or (offset < first <= covered_until)

    return is_hidden


DAMAGES = (flip, flip_header, cut, swap, remove, double)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_no_gap_is_silent_and_no_row_is_wrong(
    damage: Callable[[SmallLog, Random], None], tmp_path: Path
) -> None:
    named = 0
    for seed in range(CASES_OF_A_KIND):
        random = Random(f"{damage.__name__} {seed}")
        log = write_log(tmp_path / str(seed), random)
        damage(log, random)
        reading = read_log(log.folder, range_bytes=random.choice([200, 600, 2**30]))
        check(log, reading, hidden_offsets(log))
        named += bool(reading.damages)
        shutil.rmtree(log.folder)
    # Hidden records are rare, except where whole files are removed.
    assert named >= CASES_OF_A_KIND * (0.2 if damage is remove else 0.85)


def test_a_sound_log_has_no_damage_however_it_is_split(tmp_path: Path) -> None:
    for seed in range(50):
        log = write_log(tmp_path / str(seed), Random(seed))
        for range_bytes in (1, 150, 400, 2**30):
            reading = read_log(log.folder, range_bytes=range_bytes)
            assert reading.damages == []
            for is_snapshot in (False, True):
                assert found(reading, is_snapshot=is_snapshot) == written(
                    log, is_snapshot=is_snapshot
                )


@pytest.mark.parametrize("change", [-1, 40])
def test_an_epoch_that_does_not_fit_its_neighbours_is_named(tmp_path: Path, change: int) -> None:
    log = write_log(tmp_path, Random(4))
    name = log.segments[1]
    path = log.inner / name
    sound = path.read_bytes()
    for batch in log.batches[name]:
        data = bytearray(sound)
        wrong = batch.partition_leader_epoch + change
        data[batch.position + 12 : batch.position + 16] = wrong.to_bytes(4, "big", signed=True)
        path.write_bytes(data)
        reading = read_log(log.folder)
        is_first_of_its_epoch = all(
            other.partition_leader_epoch < batch.partition_leader_epoch
            for each in log.segments
            for other in log.batches[each]
            if other.base_offset < batch.base_offset
        )
        # One less still lies between the neighbours where an epoch begins.
        # At the border of two segments the batch before may be the one that is named.
        assert reading.damages or (change < 0 and is_first_of_its_epoch)
