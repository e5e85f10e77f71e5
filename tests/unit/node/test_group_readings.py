"""The counts of groups that a coordinator has."""

from collections.abc import Mapping

from tests.unit.node.sharing_groups import Sharing

from kvorum.node.monitoring.readings import group_readings

ALL_ZERO = {"Empty": 0, "Stable": 0, "Dead": 0}


def counts(sharing: Sharing | None, name: str) -> Mapping[str, object]:
    """Return what a metric has for each value of its label."""
    service = None if sharing is None else sharing.service
    return {one.labels[0]: one.value for one in group_readings(service) if one.metric.name == name}


async def test_share_groups_are_counted_by_their_states() -> None:
    sharing = Sharing()
    await sharing.begin()
    assert counts(sharing, "share-group-count") == ALL_ZERO
    await sharing.heartbeat(0, ["orders"])
    await sharing.heartbeat(0, ["orders"], group_id="other")
    assert counts(sharing, "share-group-count") == {**ALL_ZERO, "Stable": 2}
    await sharing.heartbeat(-1)
    assert counts(sharing, "share-group-count") == {**ALL_ZERO, "Empty": 1, "Stable": 1}
    assert counts(sharing, "group-count") == {"classic": 0, "consumer": 0, "share": 2}


def test_nothing_is_counted_without_a_coordinator() -> None:
    assert counts(None, "share-group-count") == ALL_ZERO
