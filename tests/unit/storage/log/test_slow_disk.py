"""A log whose disk is slow: what was appended is in it at once, and readable once it is stored."""

from dataclasses import replace
from typing import Final

import pytest
from tests.support.faulty_files import FaultyFiles
from tests.support.held_threads import HeldThreads
from tests.unit.storage.local_logs import (
    BATCHES,
    CONFIG,
    NEW,
    content,
    crashed,
    loaded,
    on_disk,
    segment,
)

from kvorum.storage.errors import PoisonedError
from kvorum.storage.log.local_log import LocalLog

TOPIC: Final = replace(CONFIG, is_flushed_on_roll=False)


class SlowLog:
    """A log with one batch that is stored, after which its disk is slow."""

    def __init__(self) -> None:
        self.files = FaultyFiles()
        self.threads = HeldThreads()
        self.log: LocalLog = loaded(self.files, config=TOPIC, threads=self.threads).log
        self.threads.slow_down(lambda: self.log.append(BATCHES[0]))

    def append(self, *numbers: int) -> None:
        for number in numbers:
            self.log.append(BATCHES[number])


@pytest.fixture
def slow() -> SlowLog:
    return SlowLog()


def test_an_append_does_not_wait_for_the_disk(slow: SlowLog) -> None:
    before = on_disk(slow.files)
    slow.append(1, 2)
    assert on_disk(slow.files) == before
    assert (slow.log.log_end_offset, slow.log.stored_end_offset) == (3, 1)
    assert slow.log.writes.is_behind


def test_what_is_not_stored_cannot_be_read(slow: SlowLog) -> None:
    slow.append(1, 2)
    assert bytes(slow.log.read(0, 10_000)) == BATCHES[0]
    assert not slow.log.read(1, 10_000)
    found = slow.log.read_range(0, 10_000, end_offset=3)
    assert found is not None
    assert bytes(found.records) == BATCHES[0]
    assert slow.log.read_range(1, 10_000, end_offset=3) is None


def test_what_is_stored_meanwhile_can_be_read(slow: SlowLog) -> None:
    slow.append(1, 2)
    slow.threads.release()
    slow.append(3)
    assert (slow.log.log_end_offset, slow.log.stored_end_offset) == (4, 3)
    found = slow.log.read_range(1, 10_000, end_offset=4)
    assert found is not None
    assert bytes(found.records) == BATCHES[1] + BATCHES[2]


def test_the_file_is_in_the_end_as_a_fast_disk_has_it(slow: SlowLog) -> None:
    slow.append(*range(1, 20))
    slow.threads.release()
    fast = FaultyFiles()
    other = loaded(fast, config=TOPIC).log
    for batch in BATCHES:
        other.append(batch)
    assert on_disk(slow.files) == on_disk(fast)
    assert content(slow.log) == list(BATCHES)


def test_the_end_of_a_segment_is_written_after_its_records(slow: SlowLog) -> None:
    first, *_ = slow.log.segments
    before = on_disk(slow.files)
    slow.append(*range(1, 20))
    assert slow.log.segments[0] is first
    assert len(slow.log.segments) > 1
    after = on_disk(slow.files)
    new = after.keys() - before
    assert {name: after[name] for name in before} == before
    assert new
    assert not any(after[name] or name.endswith(".snapshot") for name in new)


def test_a_crash_leaves_what_was_stored(slow: SlowLog) -> None:
    slow.append(*range(1, 20))
    left = slow.files.after_process_crash()
    assert content(loaded(left, crashed(0)).log) == [BATCHES[0]]


def test_a_flush_stores_all_that_was_appended_before(slow: SlowLog) -> None:
    slow.append(1, 2)
    assert slow.log.flush() == 3
    assert slow.log.stored_end_offset == 3
    assert segment(0).name in on_disk(slow.files)
    assert not slow.log.writes.is_behind


def test_a_flush_after_the_writes_is_waited_for_with_them(slow: SlowLog) -> None:
    told: list[int] = []
    slow.append(1)
    slow.log.flush_behind()
    slow.append(2)
    slow.log.writes.when_done(lambda: told.append(slow.log.recovery_point))
    assert slow.log.recovery_point == 0
    slow.threads.release()
    assert told == [2]
    assert slow.log.stored_end_offset == 3


def test_a_truncation_comes_after_the_writes(slow: SlowLog) -> None:
    slow.append(1, 2, 3)
    slow.log.truncate_to(2, now_ms=0)
    slow.append(2)
    slow.threads.release()
    assert content(slow.log) == [BATCHES[0], BATCHES[1], BATCHES[2]]
    assert slow.log.stored_end_offset == 3


def test_a_closed_log_has_everything(slow: SlowLog) -> None:
    slow.append(*range(1, 20))
    slow.log.close()
    reopened = loaded(slow.files.after_process_crash(), NEW).log
    assert content(reopened) == list(BATCHES)


def test_a_failed_write_loses_what_comes_after_it_and_poisons_the_log(slow: SlowLog) -> None:
    told: list[str] = []
    slow.append(1, 2)
    slow.log.writes.when_done(lambda: told.append("told"))
    slow.files.fail("write", 1)
    slow.threads.release()
    assert told == ["told"]
    assert slow.log.writes.has_failed
    assert slow.log.stored_end_offset == 1
    with pytest.raises(PoisonedError):
        slow.append(3)
    left = slow.files.after_process_crash()
    assert content(loaded(left, crashed(0)).log) == [BATCHES[0]]


def test_a_log_that_is_abandoned_writes_nothing_more(slow: SlowLog) -> None:
    slow.append(1)
    before = on_disk(slow.files)
    slow.log.abandon()
    slow.threads.release()
    assert on_disk(slow.files) == before
    assert slow.log.writes.has_failed
