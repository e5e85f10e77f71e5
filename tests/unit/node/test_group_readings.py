"""The counts of groups that a coordinator has."""

from collections.abc import Mapping

import pytest
from tests.unit.node.sharing_groups import Sharing

from kvorum.node.broker.group_coordinator.share_group_service import ShareGroupService
from kvorum.node.metrics.sensors import WINDOW_MS
from kvorum.node.monitoring.readings import group_readings, share_rebalance_readings

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


def rebalances(service: ShareGroupService | None, now_ms: float) -> Mapping[str, object]:
    return {
        one.metric.name.removeprefix("share-group-rebalance-"): one.value
        for one in share_rebalance_readings(service, now_ms)
    }


async def test_heartbeats_that_give_a_share_group_a_new_epoch_are_rebalances() -> None:
    sharing = Sharing()
    await sharing.begin()

    def count() -> object:
        return rebalances(sharing.share, sharing.runtime.monotonic_ms())["count"]

    joined, _ = await sharing.heartbeat(0, ["orders"])
    assert count() == 1
    await sharing.until(lambda: bool(sharing.initialized()))
    epoch, _ = await sharing.heartbeat(joined)
    assert count() == 2
    await sharing.heartbeat(epoch, ["orders"])
    assert count() == 2
    await sharing.heartbeat(epoch, ["orders", "payments"])
    assert count() == 3
    await sharing.heartbeat(-1)
    assert count() == 3


async def test_rebalances_have_a_rate() -> None:
    sharing = Sharing()
    await sharing.begin()
    await sharing.heartbeat(0, ["orders"])
    now_ms = sharing.runtime.monotonic_ms()
    assert rebalances(sharing.share, now_ms)["rate"] == pytest.approx(1000 / WINDOW_MS, rel=0.01)


def test_there_are_no_rebalances_without_a_share_group() -> None:
    assert rebalances(None, 0.0) == {"rate": 0, "count": 0}
