"""Maps with a history, whose beginning is forgotten with a commit."""

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
