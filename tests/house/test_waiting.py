"""The one way to wait ends with the awaited state, the last answer and the log of the node."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from tests.support.waiting import (
    PATIENCE_S,
    NeverCameAboutError,
    Threads,
    wait_for,
    wait_for_async,
    wait_for_change,
    wait_for_event,
)


def test_a_number_is_an_answer_and_an_empty_value_is_not() -> None:
    answers: Iterator[object] = iter((None, False, (), "", 0))
    assert wait_for(lambda: next(answers), "a number") == 0


def test_an_error_that_is_expected_meanwhile_is_not_an_answer() -> None:
    answers = iter([ConnectionError("refused")])

    def look() -> str:
        for error in answers:
            raise error
        return "served"

    assert wait_for(look, "the node serves", not_yet=(ConnectionError,)) == "served"


def test_any_other_error_ends_the_wait() -> None:
    def look() -> None:
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        wait_for(look, "never", not_yet=(ConnectionError,))


def test_the_end_of_patience_says_what_was_there_instead() -> None:
    def look() -> None:
        raise ConnectionError("refused")

    with pytest.raises(NeverCameAboutError) as caught:
        wait_for(
            look,
            "the node serves",
            not_yet=(ConnectionError,),
            otherwise=lambda: "its log",
            patience_s=0,
        )
    told = str(caught.value)
    assert "still not so: the node serves; the last answer: ConnectionError('refused')" in told
    assert told.endswith("\nits log")


async def test_a_wait_in_an_event_loop_lets_it_go_on() -> None:
    states: list[int] = []
    asyncio.get_running_loop().call_later(0, states.append, 7)

    async def look() -> int | None:
        return states[0] if states else None

    found: int = await wait_for_async(look, "a state")
    assert found == 7


def test_a_wait_for_a_change_says_what_was_there_instead() -> None:
    changed = threading.Condition()
    assert wait_for_change(changed, lambda: 3, "a number") == 3
    with pytest.raises(NeverCameAboutError, match="a number; the last answer: None"):
        wait_for_change(changed, lambda: None, "a number", patience_s=0)


async def test_a_wait_for_an_event_looks_again_with_each() -> None:
    changed = asyncio.Event()
    states = iter([None, None, 5])
    loop = asyncio.get_running_loop()
    loop.call_soon(changed.set)
    loop.call_later(0, lambda: loop.call_soon(changed.set))
    assert await wait_for_event(changed, lambda: next(states), "a number") == 5


async def test_a_wait_for_an_event_says_what_was_there_instead() -> None:
    with pytest.raises(NeverCameAboutError, match="a number; the last answer: False"):
        await wait_for_event(asyncio.Event(), lambda: False, "a number", patience_s=0)


def test_a_thread_that_does_not_end_is_a_failure_that_names_its_work() -> None:
    may_end = threading.Event()

    def hang() -> None:
        may_end.wait()

    threads = Threads()
    threads.patience_s = 0.0
    threads.start(hang)
    with pytest.raises(AssertionError, match=r"a thread does not end: .*\(hang\)"):
        threads.join()
    assert threads.are_alive
    threads.patience_s = PATIENCE_S
    may_end.set()
    threads.join()
    assert not threads.are_alive
