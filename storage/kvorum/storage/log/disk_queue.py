"""The writes of one log, in order: at once while the disk is fast, else one after the other apart.

A write goes to the page cache and takes some microseconds, less than handing it to a thread would.
A disk that is overloaded or fails holds it for seconds, and with it everything else that the thread
of the log's owner does. So the owner's thread writes until one write takes long. From then on
writes are handed over, until none has taken long for a while.

**Order.** Writes are done in the order in which they were asked for, whichever thread does them. A
crash therefore leaves on the disk what it would have left without the queue, or less of it.

**Promises.** What is handed over is not in the file yet. `when_done` calls when it is.

**Failures.** A write that is done at once raises its error, and the log is as it was before. One
that was handed over poisons the log: later ones relied on it. Those are not done any more.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from kvorum.storage.errors import StorageError, TooManyOpenFilesError
from kvorum.storage.log.disk_pace import SLOW_MS, DiskPace, DiskThreads
from kvorum.storage.log.poison import Poison

DESCRIPTOR_WAIT_SECONDS: Final = 0.1
"""The pause before a write that got no descriptor is tried again."""


class WriteOrder(Protocol):
    """The order in which a log's writes are done."""

    def do(self, work: Callable[[], object]) -> None:
        """Do a write, now or later, after all that were asked for before."""
        ...


class _InPlace:
    """The order of a log whose writes may block its owner: each is done at once."""

    def do(self, work: Callable[[], object]) -> None:
        """Do a write."""
        work()


IN_PLACE: Final[WriteOrder] = _InPlace()


class _Callback(NamedTuple):
    """A call that is due when so many writes are done."""

    write_count: int
    call: Callable[[], None]


class DiskQueue:
    """The writes of one log; without `threads` all of them are done at once.

    The owner's thread calls everything but `finish`, which any thread may call.
    """

    def __init__(self, poison: Poison, threads: DiskThreads | None) -> None:
        self._poison = poison
        self._threads = threads
        self._waiting: deque[Callable[[], object]] = deque()
        self._asked_count = 0
        self._done_count = 0
        self.has_failed = False
        """Whether writes that were handed over will never be done."""
        self._is_under_way = False
        self._pace = None if threads is None else DiskPace(threads)
        self._callbacks: deque[_Callback] = deque()
        # Held while a write that was handed over is done.
        self._one_at_a_time = threading.Lock()
        self._thread_at_work = 0
        self._pause = threading.Event()

    @property
    def is_behind(self) -> bool:
        """Whether a write that was asked for is not done yet."""
        return self._done_count < self._asked_count and not self.has_failed

    def do(self, work: Callable[[], object]) -> None:
        """Do a write at once and raise its error, or hand it over if the disk is slow."""
        pace = self._pace
        if pace is None:
            work()
            return
        if self.has_failed:
            self._poison.demand_sound()
        if self.is_behind or pace.is_slow:
            self._hand_over(work)
            return
        begun_ms = pace.begin()
        try:
            work()
        finally:
            pace.end(begun_ms)

    def do_in_thread(self, work: Callable[[], object]) -> None:
        """Hand over what always takes long, as a sync does."""
        if self._threads is None:
            work()
        else:
            self._hand_over(work)

    def when_done(self, call: Callable[[], None]) -> None:
        """Call when all that was asked for so far is done or has failed, which may be at once."""
        if self.is_behind:
            self._callbacks.append(_Callback(self._asked_count, call))
        else:
            call()

    def finish(self) -> None:
        """Return when all that was asked for so far is done or has failed; do it, if need be.

        What was handed over may call this: all before it is done.
        """
        if self._thread_at_work == threading.get_ident():
            return
        asked_count = self._asked_count
        while self._done_count < asked_count and not self.has_failed:
            self._do_first()

    def drop(self) -> None:
        """Do no write any more: the files are closed. Those that wait have failed."""
        self.has_failed = self.has_failed or self.is_behind

    def _hand_over(self, work: Callable[[], object]) -> None:
        self._waiting.append(work)
        self._asked_count += 1
        if not self._is_under_way:
            self._go_on()

    def _go_on(self) -> None:
        assert self._threads is not None
        self._is_under_way = True
        self._threads.run_blocking(self._do_some, self._on_done)

    def _do_some(self) -> None:
        """Do writes in a thread: one, and others while those who wait for it may be kept."""
        pace = self._pace
        assert pace is not None
        end_ms = pace.begin() + SLOW_MS
        is_time_left = True
        while self.is_behind and is_time_left:
            begun_ms = pace.begin()
            self._do_first()
            pace.end(begun_ms)
            is_time_left = pace.begin() < end_ms

    def _do_first(self) -> None:
        with self._one_at_a_time:
            if not self.is_behind:
                return
            self._thread_at_work = threading.get_ident()
            try:
                self._waiting[0]()
            except TooManyOpenFilesError:
                # Nothing was written, and others will close theirs.
                self._pause.wait(DESCRIPTOR_WAIT_SECONDS)
                return
            except StorageError as error:
                self._poison.take(error)
                self.has_failed = True
                return
            except BaseException:
                self._poison.take(StorageError("a write ended by an unexpected error"))
                self.has_failed = True
                raise
            finally:
                self._thread_at_work = 0
            self._waiting.popleft()
            self._done_count += 1

    def _on_done(self, error: Exception | None) -> None:
        """Call those whose writes are done; go on with the others."""
        self._is_under_way = False
        while self._callbacks and (
            self.has_failed or self._callbacks[0].write_count <= self._done_count
        ):
            self._callbacks.popleft().call()
        if error is not None:
            raise error
        # Another thread may have done the last writes just now: their callers are called next time.
        if self.is_behind or self._callbacks:
            self._go_on()
