"""Coroutines on a `Runtime`, so that code which waits reads from top to bottom in every loop.

They await a `Wait` where a coroutine of asyncio awaits a future; nothing else may be awaited. A
`Task` runs one. `kvorum.node.tasks` leads from here to asyncio and back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from functools import partial
from typing import Any, Generic, NamedTuple, NoReturn, TypeAlias, TypeVar, cast

from kvorum.node.runtime import Runtime

Result = TypeVar("Result")
Take: TypeAlias = Callable[[Result | Exception], None]
"""Takes a result, or the error that is there instead."""
GiveUp: TypeAlias = Callable[[], None]
"""Ends a wait whose result is not wanted any more."""


class Wait(Generic[Result]):
    """The wait for one result.

    `begin` is called with what takes the result, in a later turn, and returns what gives up.
    """

    def __init__(self, begin: Callable[[Take[Result]], GiveUp]) -> None:
        self.begin = begin

    def __await__(self) -> Generator[Wait[Result], Result, Result]:
        """Wait; raises the error if there is one."""
        return (yield self)


class Task(Generic[Result]):
    """A coroutine that runs until it ends, or until `close`; `then` takes its result or error."""

    __slots__ = ("_coroutine", "_give_up", "_then", "_waits_for")

    def __init__(self, coroutine: Coroutine[Wait[Any], Any, Result], then: Take[Result]) -> None:
        self._coroutine = coroutine
        self._then = then
        self._waits_for: Wait[Any] | None = None
        self._give_up: GiveUp = _do_nothing
        self._go_on(coroutine.send, None)

    def close(self) -> None:
        """End the coroutine where it waits, as if it had raised GeneratorExit; repeats are free."""
        if self._waits_for is not None:
            self._waits_for = None
            self._give_up()
            self._coroutine.close()

    def _go_on(self, resume: Callable[[Any], Wait[Any]], result: Any) -> None:
        try:
            wait = resume(result)
        except StopIteration as end:
            self._then(end.value)
        except Exception as error:  # noqa: BLE001 - `then` takes it
            self._then(error)
        else:
            if not isinstance(cast("object", wait), Wait):
                raise TypeError(f"{self._coroutine} waits for {wait!r}, which is not a Wait")
            self._waits_for = wait
            self._give_up = wait.begin(partial(self._take, wait))

    def _take(self, wait: Wait[Any], result: Any) -> None:
        if self._waits_for is not wait:
            return
        self._waits_for = None
        self._give_up = _do_nothing
        resume = self._coroutine.throw if isinstance(result, Exception) else self._coroutine.send
        self._go_on(resume, result)


class ClosableTasks:
    """Coroutines beside each other that run until they end, or until `close`."""

    def __init__(self) -> None:
        self._tasks: list[Task[None]] = []
        self._errors: list[Exception] = []

    def start(self, coroutine: Coroutine[Wait[Any], Any, None]) -> None:
        """Run a coroutine beside the others."""
        self._tasks.append(Task(coroutine, self._end))

    def close(self) -> None:
        """End all coroutines; raise the first error that one has failed with."""
        for task in self._tasks:
            task.close()
        self._tasks.clear()
        if self._errors:
            raise self._errors.pop(0)

    def _end(self, result: Exception | None) -> None:
        if result is not None:
            self._errors.append(result)


def sleep(runtime: Runtime, delay_ms: float) -> Wait[None]:
    """Return the wait for `delay_ms` to pass."""
    deadline_ms = runtime.monotonic_ms() + delay_ms
    return Wait(lambda take: runtime.call_at(deadline_ms, partial(take, None)).cancel)


def called_by(ask: Callable[[Callable[[], None]], None]) -> Wait[None]:
    """Return the wait for a call in a later turn, which `ask` arranges and nothing takes back."""

    def begin(take: Take[None]) -> GiveUp:
        ask(partial(take, None))
        return _do_nothing

    return Wait(begin)


def other_work(runtime: Runtime) -> Wait[None]:
    """Return the wait for a turn of other work."""
    return called_by(runtime.call_soon)


def in_thread(runtime: Runtime, work: Callable[[], Result]) -> Wait[Result]:
    """Return the wait for blocking work, which is done in parallel to everything else."""

    def begin(take: Take[Result]) -> GiveUp:
        results: list[Result] = []

        def do() -> None:
            results.append(work())

        def then(error: Exception | None) -> None:
            take(results[0] if error is None else error)

        runtime.run_blocking(do, then)
        return _do_nothing

    return Wait(begin)


class Promise(Generic[Result]):
    """A result that comes once, and for which one task may wait."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._settled: list[Result | Exception] = []
        self._take: Take[Result] | None = None

    @property
    def is_settled(self) -> bool:
        """Whether the result or its error is there."""
        return bool(self._settled)

    def settle(self, result: Result | Exception) -> None:
        """Give the result, or the error in place of one; the first one counts."""
        if self._settled:
            return
        self._settled.append(result)
        if self._take is not None:
            self._runtime.call_soon(partial(self._take, result))

    async def result(self) -> Result:
        """Return the result once it is there; raises the error."""
        if not self._settled:
            result: Result = await Wait(self._begin)
            return result
        (settled,) = self._settled
        if isinstance(settled, Exception):
            raise settled
        return settled

    def _begin(self, take: Take[Result]) -> GiveUp:
        self._take = take
        return self._forget

    def _forget(self) -> None:
        self._take = None


async def all_of(
    runtime: Runtime, coroutines: Iterable[Coroutine[Wait[Any], Any, Result]]
) -> list[Result]:
    """Run coroutines beside each other, and return their results in order.

    Once all have ended, raises the first error that there is.
    """
    ended: Promise[None] = Promise(runtime)
    beside = list(coroutines)
    results: dict[int, Result | Exception] = {}

    def take(number: int, result: Result | Exception) -> None:
        results[number] = result
        if len(results) == len(beside):
            ended.settle(None)

    tasks = [Task(one, partial(take, number)) for number, one in enumerate(beside)]
    if len(results) < len(beside):
        try:
            await ended.result()
        finally:
            for task in tasks:
                task.close()
    in_order = [results[number] for number in range(len(beside))]
    for result in in_order:
        if isinstance(result, Exception):
            raise result
    return cast("list[Result]", in_order)


async def in_time(
    runtime: Runtime,
    coroutine: Coroutine[Wait[Any], Any, Result],
    timeout_ms: float,
    late: Exception,
) -> Result:
    """Return the result of a coroutine, which is closed after a time; then `late` is raised."""
    ended: list[Result | Exception] = []
    waiting: list[Take[Result]] = []

    def end(result: Result | Exception) -> None:
        if waiting:
            waiting.pop()(result)
        else:
            ended.append(result)

    def begin(take: Take[Result]) -> GiveUp:
        waiting.append(take)
        return waiting.clear

    timer = runtime.call_at(runtime.monotonic_ms() + timeout_ms, partial(end, late))
    task = Task(coroutine, end)
    try:
        if not ended:
            result: Result = await Wait(begin)
            return result
        if isinstance(ended[0], Exception):
            raise ended[0]
        return ended[0]
    finally:
        timer.cancel()
        task.close()


class Pulse:
    """Something that happens again and again, for which any number of tasks may wait."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        # In the order in which they came.
        self._waiting: dict[Take[bool], None] = {}

    def beat(self) -> None:
        """Let all go on that wait."""
        waiting, self._waiting = self._waiting, {}
        for take in waiting:
            self._runtime.call_soon(partial(take, True))

    def next(self, timeout_ms: float | None = None) -> Wait[bool]:
        """Return the wait for the next beat: True, or False when the time is over."""

        def begin(take: Take[bool]) -> GiveUp:
            if timeout_ms is None:
                self._waiting[take] = None
                return partial(self._waiting.pop, take, None)

            def on_beat(result: bool | Exception) -> None:
                timer.cancel()
                take(result)

            def late() -> None:
                self._waiting.pop(on_beat, None)
                take(False)

            def give_up() -> None:
                timer.cancel()
                self._waiting.pop(on_beat, None)

            self._waiting[on_beat] = None
            timer = self._runtime.call_at(self._runtime.monotonic_ms() + timeout_ms, late)
            return give_up

        return Wait(begin)

    async def until(self, condition: Callable[[], bool], timeout_ms: float | None = None) -> bool:
        """Wait until a condition holds, which is looked at upon each beat.

        Return whether it does when it holds, or when the time is over.
        """
        deadline_ms = None if timeout_ms is None else self._runtime.monotonic_ms() + timeout_ms
        while not condition():
            left_ms = None if deadline_ms is None else deadline_ms - self._runtime.monotonic_ms()
            if not await self.next(left_ms):
                return condition()
        return True


class Signal:
    """A flag that is up or down, and for which tasks may wait."""

    def __init__(self, runtime: Runtime) -> None:
        self.is_set = False
        self._risings = Pulse(runtime)

    def set(self) -> None:
        """Raise the flag."""
        self.is_set = True
        self._risings.beat()

    def clear(self) -> None:
        """Lower the flag."""
        self.is_set = False

    async def wait(self, timeout_ms: float | None = None) -> bool:
        """Return whether the flag is up before the time is over."""
        return self.is_set or await self._risings.next(timeout_ms)


async def whenever_due(
    runtime: Runtime,
    changed: Signal,
    next_due_ms: Callable[[], float | None],
    work: Callable[[], Coroutine[Wait[Any], Any, None]],
) -> NoReturn:
    """Do something whenever it is due; while nothing is (None), wait for a change."""
    while True:
        changed.clear()
        due_ms, now_ms = next_due_ms(), runtime.monotonic_ms()
        if due_ms is None:
            await changed.wait()
        elif due_ms > now_ms:
            await sleep(runtime, due_ms - now_ms)
        else:
            await work()


class Lock:
    """Lets one task after the other pass, in the order in which they came."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._is_held = False
        self._waiting: deque[Take[None]] = deque()

    async def __aenter__(self) -> None:
        if self._is_held:
            # It stays held from the one before to this one.
            await Wait(self._queue)
        self._is_held = True

    async def __aexit__(self, *_: object) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        self._is_held = bool(self._waiting)
        if self._waiting:
            self._runtime.call_soon(partial(self._waiting.popleft(), None))

    def _queue(self, take: Take[None]) -> GiveUp:
        self._waiting.append(take)
        return partial(self._leave, take)

    def _leave(self, take: Take[None]) -> None:
        if take in self._waiting:
            self._waiting.remove(take)
        else:
            # Its turn had come.
            self._pass_on()


class _Piece(NamedTuple):
    """A piece of work, and what takes its result."""

    work: Callable[[], Any]
    take: Take[Any]
    may_block: bool


class OneAtATime:
    """Work that is done one piece after the other, in the order in which it was asked for."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._is_busy = False
        self._queue: deque[_Piece] = deque()

    def in_thread(self, work: Callable[[], Result]) -> Wait[Result]:
        """Return the wait for a piece of work that may block."""
        return self._wait(work, may_block=True)

    def in_loop(self, work: Callable[[], Result]) -> Wait[Result]:
        """Return the wait for a piece of work in the loop, while no other piece is under way."""
        return self._wait(work, may_block=False)

    def done(self) -> Wait[None]:
        """Return the wait for all that was asked for before."""
        return self.in_thread(_do_nothing)

    def _wait(self, work: Callable[[], Result], *, may_block: bool) -> Wait[Result]:
        def begin(take: Take[Result]) -> GiveUp:
            piece = _Piece(work, take, may_block)
            self._queue.append(piece)
            if not self._is_busy:
                self._is_busy = True
                self._runtime.call_soon(self._next)
            return partial(self._drop, piece)

        return Wait(begin)

    def _drop(self, piece: _Piece) -> None:
        """Do a piece no longer, unless it is under way."""
        if piece in self._queue:
            self._queue.remove(piece)

    def _next(self) -> None:
        if not self._queue:
            self._is_busy = False
            return
        work, take, may_block = self._queue.popleft()
        results: list[Any] = []

        def then(error: Exception | None) -> None:
            try:
                take(results[0] if error is None else error)
            finally:
                self._next()

        def do() -> None:
            results.append(work())

        if may_block:
            self._runtime.run_blocking(do, then)
            return
        error: Exception | None = None
        try:
            do()
        except Exception as raised:  # noqa: BLE001 - `take` gets it
            error = raised
        then(error)


def _do_nothing() -> None:
    pass
