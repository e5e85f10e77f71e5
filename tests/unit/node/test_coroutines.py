"""Coroutines on a runtime: what is begun, in which order it goes on, and how it ends."""

import asyncio
from random import Random

import pytest

from kvorum.node.coroutines import (
    ClosableTasks,
    GiveUp,
    Lock,
    OneAtATime,
    Promise,
    Pulse,
    Signal,
    Take,
    Task,
    Wait,
    all_of,
    in_time,
    other_work,
    sleep,
    whenever_due,
)
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime


class World:
    def __init__(self) -> None:
        self.events = Events()
        self.runtime = SimulatedRuntime(
            self.events, NodeClock(self.events), Random(1), turn=lambda callback: callback()
        )
        self.said: list[object] = []

    def run(self, until_ms: float = 1e9) -> list[object]:
        while (callback := self.events.take_next(until_ms)) is not None:
            callback()
        return self.said


@pytest.fixture
def world() -> World:
    return World()


def test_a_result_and_an_error_come_to_the_one_who_began(world: World) -> None:
    async def fine() -> str:
        await sleep(world.runtime, 5)
        return "fine"

    async def broken() -> str:
        await other_work(world.runtime)
        raise ValueError("broken")

    async def at_once() -> str:
        return "at once"

    for coroutine in (fine(), broken(), at_once()):
        Task(coroutine, lambda result: world.said.append(str(result)))
    assert world.run() == ["at once", "broken", "fine"]


def test_a_closed_task_cleans_up_where_it_waits_and_goes_on_no_more(world: World) -> None:
    async def waits() -> None:
        try:
            await sleep(world.runtime, 10)
            world.said.append("went on")
        finally:
            world.said.append("cleaned up")

    task = Task(waits(), world.said.append)
    world.run(until_ms=5)
    task.close()
    task.close()
    assert world.run() == ["cleaned up"]


def test_a_second_answer_to_a_wait_does_not_answer_the_next_one(world: World) -> None:
    takes: list[Take[str]] = []

    def begin(take: Take[str]) -> GiveUp:
        takes.append(take)
        return lambda: None

    async def waits_twice() -> None:
        world.said.append(await Wait(begin))
        world.said.append(await Wait(begin))

    Task(waits_twice(), lambda _: None)
    takes[0]("first")
    takes[0]("again")
    takes[1]("second")
    assert world.said == ["first", "second"]


def test_a_task_refuses_what_is_not_of_its_runtime(world: World) -> None:
    """A future of asyncio would be waited for without an end."""

    async def waits_in_asyncio() -> None:
        await asyncio.sleep(0)

    with pytest.raises(TypeError, match="which is not a Wait"):
        Task(waits_in_asyncio(), world.said.append)


def test_a_promise_is_kept_once_whether_it_is_waited_for_or_not(world: World) -> None:
    async def says(promise: Promise[str]) -> None:
        world.said.append(await promise.result())

    early = Promise[str](world.runtime)
    late = Promise[str](world.runtime)
    early.settle("early")
    Task(says(early), world.said.append)
    task = Task(says(late), world.said.append)
    assert world.run() == ["early", None]
    late.settle("late")
    late.settle("later")
    assert world.said == ["early", None], "it goes on in a turn of its own"
    assert world.run() == ["early", None, "late", None]
    task.close()


def test_the_error_of_a_promise_is_raised(world: World) -> None:
    async def waits(promise: Promise[str]) -> str:
        return await promise.result()

    for is_early in (True, False):
        promise = Promise[str](world.runtime)
        if is_early:
            promise.settle(ValueError("refused"))
        Task(waits(promise), lambda result: world.said.append(str(result)))
        promise.settle(ValueError("refused"))
    assert world.run() == ["refused", "refused"]


def test_tasks_beside_each_other_give_their_results_in_order(world: World) -> None:
    async def after(delay_ms: float) -> float:
        if delay_ms:
            await sleep(world.runtime, delay_ms)
        if delay_ms == 4:
            raise ValueError("four")
        return delay_ms

    for delays in ((5, 0, 3), (0, 0), (), (6, 4, 5)):
        Task(all_of(world.runtime, map(after, delays)), world.said.append)
    said = world.run()
    assert said[:3] == [[0, 0], [], [5, 0, 3]]
    assert isinstance(said[3], ValueError), "it came after the one that took the longest"


def test_tasks_beside_each_other_end_with_the_one_that_waits_for_them(world: World) -> None:
    async def cleans_up() -> None:
        try:
            await sleep(world.runtime, 10)
        finally:
            world.said.append("cleaned up")

    Task(all_of(world.runtime, [cleans_up(), cleans_up()]), world.said.append).close()
    assert world.run() == ["cleaned up", "cleaned up"]


@pytest.mark.parametrize(
    ("needs_ms", "said"), [(0, "fine"), (5, "fine"), (20, "late"), (None, "broken")]
)
def test_a_coroutine_ends_in_time_or_is_closed(
    world: World, needs_ms: float | None, said: str
) -> None:
    ends: list[str] = []

    async def works() -> str:
        try:
            if needs_ms is None:
                raise ValueError("broken")
            if needs_ms:
                await sleep(world.runtime, needs_ms)
            return "fine"
        finally:
            ends.append("ended")

    timed = in_time(world.runtime, works(), 10, ValueError("late"))
    Task(timed, lambda result: world.said.append(str(result)))
    assert world.run() == [said]
    assert ends == ["ended"]


def test_a_coroutine_is_closed_with_those_who_wait_for_its_end_in_time(world: World) -> None:
    ends: list[str] = []

    async def works() -> None:
        try:
            await sleep(world.runtime, 5)
        finally:
            ends.append("ended")

    task = Task(in_time(world.runtime, works(), 10, ValueError("late")), world.said.append)
    task.close()
    assert ends == ["ended"]
    assert world.run() == []


def test_a_lock_lets_tasks_pass_in_their_order_and_not_those_that_are_closed(world: World) -> None:
    lock = Lock(world.runtime)

    async def passes(name: str) -> None:
        async with lock:
            world.said.append(f"{name} in")
            await sleep(world.runtime, 5)
            world.said.append(f"{name} out")

    def end_of_a(_: object) -> None:
        # The lock has been handed to c by then, which has not gone on yet.
        tasks["c"].close()

    tasks = {"a": Task(passes("a"), end_of_a)}
    tasks |= {name: Task(passes(name), lambda _: None) for name in "bcd"}
    tasks["b"].close()
    assert world.run() == ["a in", "a out", "d in", "d out"]


def test_a_lock_is_free_again_after_an_error(world: World) -> None:
    lock = Lock(world.runtime)

    async def fails() -> None:
        async with lock:
            raise ValueError("inside")

    async def passes() -> None:
        async with lock:
            world.said.append("passed")

    Task(fails(), lambda result: world.said.append(str(result)))
    Task(passes(), lambda _: None)
    assert world.run() == ["inside", "passed"]


def test_a_wait_for_a_signal_ends_with_it_or_with_its_time(world: World) -> None:
    signal = Signal(world.runtime)

    async def waits(timeout_ms: float | None) -> None:
        is_set = await signal.wait(timeout_ms)
        world.said.append((timeout_ms, is_set, round(world.runtime.monotonic_ms())))

    for timeout_ms in (3, 100, None):
        Task(waits(timeout_ms), lambda _: None)
    world.events.after(10, signal.set)
    assert world.run() == [(3, False, 3), (100, True, 10), (None, True, 10)]
    Task(waits(None), lambda _: None)
    assert len(world.said) == 4


def test_a_pulse_wakes_the_tasks_that_wait_for_it_and_no_later_one(world: World) -> None:
    pulse = Pulse(world.runtime)

    async def waits(name: str) -> None:
        world.said.append((name, await pulse.next(20)))

    Task(waits("early"), lambda _: None)
    pulse.beat()
    Task(waits("late"), lambda _: None)
    assert world.run() == [("early", True), ("late", False)]


def test_a_wait_that_ends_in_time_leaves_no_timer(world: World) -> None:
    """Each request that waits for its replicas would leave one for half a minute."""
    pulse = Pulse(world.runtime)

    async def waits() -> bool:
        return await pulse.next(timeout_ms=30_000)

    Task(waits(), world.said.append)
    Task(waits(), world.said.append).close()
    pulse.beat()
    assert world.run(until_ms=1) == [True]
    assert world.events.take_next(until_ms=1e9) is None


def test_a_condition_is_looked_at_upon_each_beat_and_when_the_time_is_over(world: World) -> None:
    pulse = Pulse(world.runtime)
    arrived: list[str] = []

    async def wait_for(wanted: int, timeout_ms: float | None) -> None:
        is_there = await pulse.until(lambda: len(arrived) >= wanted, timeout_ms)
        world.said.append((wanted, is_there, round(world.events.now_ms)))

    for wanted, timeout_ms in ((0, None), (2, None), (1, 25), (3, 25), (4, 30)):
        Task(wait_for(wanted, timeout_ms), world.said.append)
    for at_ms in (10, 20):
        world.run(until_ms=at_ms)
        arrived.append("with a beat")
        pulse.beat()
    world.run(until_ms=28)
    arrived += ["without a beat"] * 2
    said = [one for one in world.run() if one is not None]
    assert said == [(0, True, 0), (1, True, 10), (2, True, 20), (3, False, 25), (4, True, 30)]


def test_pieces_of_work_are_done_one_after_the_other_in_thread_and_loop(world: World) -> None:
    thread = OneAtATime(world.runtime)

    async def works(name: str, *, may_block: bool) -> None:
        wait = thread.in_thread if may_block else thread.in_loop
        world.said.append(await wait(lambda: (name, world.runtime.work_count)))

    for name in "abcdef":
        Task(works(name, may_block=name != "c"), lambda _: None)
    assert world.run() == [("a", 1), ("b", 1), ("c", 0), ("d", 1), ("e", 1), ("f", 1)]


def test_an_error_of_a_piece_of_work_is_its_owners_and_the_next_is_done(world: World) -> None:
    thread = OneAtATime(world.runtime)

    def fail() -> None:
        raise ValueError("failed")

    async def works(*, may_block: bool) -> None:
        await (thread.in_thread if may_block else thread.in_loop)(fail)

    async def after() -> None:
        world.said.append(await thread.in_thread(lambda: "after"))

    Task(works(may_block=True), lambda result: world.said.append(str(result)))
    Task(works(may_block=False), lambda result: world.said.append(str(result)))
    Task(after(), lambda _: None)
    assert world.run() == ["failed", "failed", "after"]


def test_work_of_a_closed_task_is_not_begun_any_more(world: World) -> None:
    thread = OneAtATime(world.runtime)

    async def works(name: str) -> None:
        await thread.in_thread(lambda: world.said.append(name))

    tasks = [Task(works(name), lambda _: None) for name in "abc"]
    tasks[1].close()
    assert world.run() == ["a", "c"]


def test_what_is_done_is_all_that_was_asked_for_before(world: World) -> None:
    thread = OneAtATime(world.runtime)

    async def works(name: str) -> None:
        await thread.in_thread(lambda: world.said.append(name))

    async def waits() -> None:
        await thread.done()
        world.said.append("done")

    for coroutine in (works("a"), waits(), works("b")):
        Task(coroutine, lambda _: None)
    assert world.run() == ["a", "done", "b"]


def test_something_is_done_whenever_it_is_due_and_not_before(world: World) -> None:
    changed = Signal(world.runtime)
    due_ms: list[float] = []

    async def work() -> None:
        world.said.append((due_ms.pop(0), round(world.runtime.monotonic_ms())))

    def plan(*times_ms: float) -> None:
        due_ms.extend(times_ms)
        changed.set()

    due = whenever_due(world.runtime, changed, lambda: due_ms[0] if due_ms else None, work)
    task = Task(due, lambda _: None)
    world.events.after(10, lambda: plan(5, 20))
    world.events.after(50, lambda: plan(60))
    assert world.run(until_ms=100) == [(5, 10), (20, 20), (60, 60)]
    task.close()


def test_an_error_of_one_of_several_tasks_is_raised_when_all_are_closed(world: World) -> None:
    """The others run on meanwhile."""
    tasks = ClosableTasks()

    async def fail() -> None:
        await sleep(world.runtime, 10)
        raise ValueError("a bug")

    async def repeat() -> None:
        while True:
            await sleep(world.runtime, 20)
            world.said.append("again")

    tasks.start(fail())
    tasks.start(repeat())
    assert world.run(until_ms=50) == ["again", "again"]
    with pytest.raises(ValueError, match="a bug"):
        tasks.close()
    assert world.run(until_ms=100) == ["again", "again"]
    tasks.close()
