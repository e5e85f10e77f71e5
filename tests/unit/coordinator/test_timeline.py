"""Maps with a history, whose beginning is forgotten with a commit."""

import sys
from collections.abc import Callable
from random import Random

import pytest

from kvorum.coordinator.timeline import Timeline, TimelineMap


def test_what_is_committed_keeps_no_history() -> None:
    timeline = Timeline()
    entries: TimelineMap[str, int] = TimelineMap(timeline)
    for offset in range(1, 9):
        entries.set("one", offset)
        entries.set("two", offset)
        timeline.written_offset = offset
    entries.remove("two")
    timeline.written_offset = 9
    timeline.commit(9)
    timeline.revert(9)
    assert dict(entries.items()) == {"one": 8}
    # Earlier states than the committed one are forgotten.
    assert entries.get("one", 5) is None


def test_a_key_whose_change_is_taken_back_is_the_last_one() -> None:
    """Kafka's timeline maps put the value before it again, which counts for keys of one slot."""
    timeline = Timeline()
    entries = TimelineMap[str, int](timeline)
    entries.set("a", 1)
    entries.set("b", 2)
    timeline.written_offset = 1
    entries.set("a", 3)
    timeline.revert(1)
    assert list(entries.items()) == [("b", 2), ("a", 1)]


def test_a_key_that_is_put_again_after_its_removal_is_the_last_one() -> None:
    timeline = Timeline()
    entries = TimelineMap[str, int](timeline)
    entries.set("a", 1)
    entries.set("b", 2)
    timeline.written_offset = 1
    entries.remove("a")
    timeline.written_offset = 2
    entries.set("a", 3)
    assert list(entries.items()) == [("b", 2), ("a", 3)]
    timeline.commit(2)
    assert list(entries.items()) == [("b", 2), ("a", 3)]


@pytest.mark.parametrize("seed", range(20))
def test_a_map_is_empty_where_its_newest_state_has_nothing(seed: int) -> None:
    """Of few keys, so that it is empty often, whatever is committed or taken back."""
    random = Random(seed)
    timeline = Timeline()
    entries = TimelineMap[str, int](timeline)
    seen = set[bool]()
    for number in range(200):
        key = random.choice("ab")
        match random.choice(("set", "remove", "remove", "write", "commit", "revert")):
            case "set":
                entries.set(key, number)
            case "remove":
                entries.remove(key)
            case "write":
                timeline.written_offset += 1
            case "commit":
                timeline.commit(random.randint(timeline.committed_offset, timeline.written_offset))
            case _:
                timeline.revert(random.randint(timeline.committed_offset, timeline.written_offset))
        assert entries.is_empty() is (not dict(entries.items()))
        seen.add(entries.is_empty())
    assert seen == {True, False}


def test_a_removal_that_is_not_committed_makes_no_later_one_slower() -> None:
    def remove_each(count: int) -> None:
        entries = TimelineMap[int, int](Timeline())
        for key in range(count):
            entries.set(key, key)
        for key in range(count):
            assert not entries.is_empty()
            entries.remove(key)
        assert entries.is_empty()

    assert _calls_in(lambda: remove_each(2000)) < 3 * _calls_in(lambda: remove_each(1000))


def _calls_in(work: Callable[[], None]) -> int:
    """Return how many functions are called while something is done."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
