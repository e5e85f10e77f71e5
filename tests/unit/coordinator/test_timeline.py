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
