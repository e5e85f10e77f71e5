"""The writes of a log are done in order, whichever thread does them."""

import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from tests.support.held_threads import HeldThreads

from kvorum.storage.errors import DiskError, PoisonedError, TooManyOpenFilesError
from kvorum.storage.log.disk_pace import SLOW_FOR_MS, SLOW_MS
from kvorum.storage.log.disk_queue import DiskQueue
from kvorum.storage.log.poison import Poison

HERE: Final = Path("/data/topic-0")


class Disk:
    """The writes of one queue, in the order in which they were done."""

    def __init__(self, *, has_threads: bool = True) -> None:
        self.threads = HeldThreads()
        self.poison = Poison(HERE)
        self.queue = DiskQueue(self.poison, self.threads if has_threads else None)
        self.done: list[str] = []

    def write(self, name: str) -> None:
        self.queue.do(lambda: self.done.append(name))

    def write_slowly(self, name: str) -> None:
        self.threads.slow_down(lambda: self.write(name))

    def take_long(self, name: str) -> None:
        """Be a write that takes long in its thread."""
        self.threads.now_ms += SLOW_MS
        self.done.append(name)

    def call_when_done(self, name: str) -> None:
        self.queue.when_done(lambda: self.done.append(name))


@pytest.fixture
def disk() -> Disk:
    return Disk()


def failing(number: int) -> Callable[[], None]:
    def write() -> None:
        raise DiskError("writing failed", errno=number, file=HERE)

    return write


def test_a_fast_disk_is_written_at_once(disk: Disk) -> None:
    disk.write("first")
    disk.write("second")
    assert disk.done == ["first", "second"]
    assert not disk.queue.is_behind


def test_writes_after_a_slow_one_are_handed_over_and_stay_in_order(disk: Disk) -> None:
    disk.write_slowly("slow")
    for name in ("first", "second"):
        disk.write(name)
    assert disk.done == ["slow"]
    assert disk.queue.is_behind
    disk.threads.release()
    assert disk.done == ["slow", "first", "second"]
    assert not disk.queue.is_behind


def test_a_disk_that_was_fast_for_a_while_is_written_at_once_again(disk: Disk) -> None:
    disk.write_slowly("slow")
    disk.threads.now_ms += SLOW_FOR_MS
    disk.write("first")
    assert disk.done == ["slow", "first"]


def test_nothing_overtakes_what_was_handed_over(disk: Disk) -> None:
    disk.write_slowly("slow")
    disk.write("first")
    disk.threads.now_ms += SLOW_FOR_MS
    disk.write("second")
    assert disk.done == ["slow"]
    disk.threads.release()
    assert disk.done == ["slow", "first", "second"]


def test_a_slow_write_in_a_thread_keeps_the_disk_slow(disk: Disk) -> None:
    disk.write_slowly("slow")
    disk.threads.now_ms += SLOW_FOR_MS - SLOW_MS
    disk.queue.do(partial(disk.take_long, "slow again"))
    disk.threads.release()
    disk.threads.now_ms += SLOW_FOR_MS - SLOW_MS
    disk.write("later")
    assert disk.queue.is_behind


def test_a_sync_is_handed_over_by_a_fast_disk_too(disk: Disk) -> None:
    disk.queue.do_in_thread(lambda: disk.done.append("sync"))
    disk.write("after it")
    assert disk.done == []
    disk.threads.release()
    assert disk.done == ["sync", "after it"]


def test_a_call_comes_when_what_was_asked_for_before_it_is_done(disk: Disk) -> None:
    disk.write_slowly("slow")
    disk.write("first")
    disk.call_when_done("told of the first")
    disk.threads.slow_down(lambda: disk.write("second"))
    disk.call_when_done("told of the second")
    disk.threads.release()
    assert disk.done == ["slow", "first", "second", "told of the first", "told of the second"]


def test_a_call_comes_at_once_where_nothing_waits(disk: Disk) -> None:
    disk.call_when_done("told")
    assert disk.done == ["told"]


def test_those_who_wait_are_called_before_the_disk_has_done_all(disk: Disk) -> None:
    disk.write_slowly("slow")
    for name in ("first", "second"):
        disk.queue.do(partial(disk.take_long, name))
        disk.call_when_done(f"told of the {name}")
    disk.threads.release()
    assert disk.done == ["slow", "first", "told of the first", "second", "told of the second"]


def test_a_failed_write_at_once_is_the_callers_and_leaves_the_log_sound(disk: Disk) -> None:
    with pytest.raises(DiskError):
        disk.queue.do(failing(errno.EIO))
    assert not disk.poison.is_there
    disk.write("next")
    assert disk.done == ["next"]


def test_a_failed_write_in_a_thread_poisons_the_log_and_ends_the_others(disk: Disk) -> None:
    disk.write_slowly("slow")
    disk.queue.do(failing(errno.EIO))
    disk.write("after it")
    disk.call_when_done("told")
    disk.threads.release()
    assert disk.done == ["slow", "told"]
    assert disk.poison.is_there
    assert disk.queue.has_failed
    assert not disk.queue.is_behind
    with pytest.raises(PoisonedError):
        disk.write("much later")


def test_an_unexpected_error_in_a_thread_poisons_the_log_and_is_raised(disk: Disk) -> None:
    disk.write_slowly("slow")
    disk.queue.do(lambda: disk.done.index("not there"))
    with pytest.raises(ValueError, match="not in list"):
        disk.threads.release()
    assert disk.poison.is_there


def test_a_write_without_a_descriptor_is_tried_again_in_its_place(disk: Disk) -> None:
    attempts: list[str] = []

    def write() -> None:
        attempts.append("first")
        if len(attempts) == 1:
            raise TooManyOpenFilesError("opening failed", errno=errno.EMFILE, file=HERE)
        disk.done.append("first")

    disk.write_slowly("slow")
    disk.queue.do(write)
    disk.write("second")
    disk.threads.release()
    assert attempts == ["first", "first"]
    assert disk.done == ["slow", "first", "second"]
    assert not disk.poison.is_there


def test_finishing_does_what_waits_and_those_who_wait_are_called_by_the_owner(disk: Disk) -> None:
    disk.write_slowly("slow")
    disk.write("first")
    disk.call_when_done("told")
    disk.queue.finish()
    assert disk.done == ["slow", "first"]
    assert not disk.queue.is_behind
    disk.threads.release()
    assert disk.done == ["slow", "first", "told"]


def test_dropped_writes_are_not_done_and_those_who_wait_are_called(disk: Disk) -> None:
    disk.write_slowly("slow")
    disk.write("first")
    disk.call_when_done("told")
    disk.queue.drop()
    disk.threads.release()
    assert disk.done == ["slow", "told"]
    assert disk.queue.has_failed


def test_without_threads_everything_is_done_at_once() -> None:
    disk = Disk(has_threads=False)
    disk.write_slowly("slow")
    disk.write("first")
    disk.queue.do_in_thread(lambda: disk.done.append("sync"))
    assert disk.done == ["slow", "first", "sync"]


def test_a_queue_with_nothing_to_do_is_dropped_without_a_failure(disk: Disk) -> None:
    disk.write_slowly("slow")
    disk.write("first")
    disk.queue.finish()
    disk.queue.drop()
    assert not disk.queue.has_failed
