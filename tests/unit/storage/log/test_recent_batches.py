"""The batches that were appended last are found where the file has them."""

import pytest
from tests.support.faulty_files import FaultyFiles
from tests.unit.storage.local_logs import BATCHES, clean, closed, filled, loaded

from kvorum.storage.log import recent_batches
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.log.recent_batches import BatchPlace, RecentBatches


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep four batches at most."""
    monkeypatch.setattr(recent_batches, "KEPT_MAX", 4)


def read_count(files: FaultyFiles) -> int:
    return sum(operation == "read" for operation, _ in files.calls)


def test_a_batch_is_found_by_each_of_its_offsets() -> None:
    recent = RecentBatches(10)
    recent.add(next_offset=13, end=100)
    recent.add(next_offset=14, end=150)
    assert [recent.holding(offset) for offset in range(9, 15)] == [
        None,
        *[BatchPlace(0, 100)] * 3,
        BatchPlace(100, 50),
        None,
    ]
    assert [recent.position_of(offset) for offset in (9, 10, 12, 13, 14)] == [None, 0, 0, 100, 150]


def test_an_offset_in_a_gap_stands_for_the_batch_after_it() -> None:
    recent = RecentBatches(0)
    recent.add(next_offset=5, end=100)
    recent.add(next_offset=20, end=160)
    assert recent.holding(12) == BatchPlace(100, 60)


@pytest.mark.usefixtures("few")
def test_the_older_ones_are_forgotten() -> None:
    recent = RecentBatches(0)
    for number in range(1, 8):
        recent.add(next_offset=number, end=10 * number)
    known = [offset for offset in range(7) if recent.holding(offset) is not None]
    assert known == [4, 5, 6]
    assert recent.holding(4) == BatchPlace(40, 10)


def test_what_was_forgotten_is_not_found_before_two_more_are_added() -> None:
    recent = RecentBatches(0)
    recent.add(next_offset=1, end=10)
    recent.forget()
    assert recent.position_of(1) is None
    recent.add(next_offset=2, end=20)
    recent.add(next_offset=3, end=35)
    assert [recent.holding(offset) for offset in range(3)] == [None, None, BatchPlace(20, 15)]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("end_offset", range(21))
def test_a_range_is_the_same_whether_it_is_at_hand_or_not(end_offset: int) -> None:
    log = filled(FaultyFiles())
    old = loaded(closed(), clean(20)).log
    for offset in range(end_offset):
        found = log.read_range(offset, 150, end_offset=end_offset)
        expected = old.read_range(offset, 150, end_offset=end_offset)
        assert found is not None
        assert expected is not None
        assert bytes(found.records) == bytes(expected.records)


def test_what_is_at_hand_is_found_without_reading() -> None:
    files = FaultyFiles()
    log = filled(files)
    base = log.segments[-1].base_offset
    before = read_count(files)
    assert [log.is_at_hand(one, end_offset=20) for one in (base - 1, base, 19, 20)] == [
        False,
        True,
        True,
        True,
    ]
    for offset in (base, 19, 20):
        log.read_range(offset, 1_000, end_offset=20)
    assert read_count(files) == before


def test_after_a_start_and_after_a_truncation_nothing_is_at_hand() -> None:
    reopened: LocalLog = loaded(closed(), clean(20)).log
    assert not reopened.is_at_hand(19, end_offset=20)
    log = filled(FaultyFiles())
    log.truncate_to(20 - 1, now_ms=0)
    assert not log.is_at_hand(18, end_offset=19)
    log.append(BATCHES[19])
    found = log.read_range(18, 1_000, end_offset=20)
    assert found is not None
    assert bytes(found.records) == BATCHES[18] + BATCHES[19]
