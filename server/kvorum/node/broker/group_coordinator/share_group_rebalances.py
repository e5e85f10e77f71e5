"""The rebalances of share groups that members cause by heartbeats (GroupCoordinatorMetrics)."""

from kvorum.node.metrics.sensors import WindowedSensor


class ShareGroupRebalances:
    """The new epochs of share groups by heartbeats; those by members that leave are not counted."""

    def __init__(self, now_ms: float) -> None:
        self.count = 0
        self.sensor = WindowedSensor(now_ms)
        """Each rebalance has the value 1."""

    def record(self, now_ms: float) -> None:
        """Count one."""
        self.count += 1
        self.sensor.record(1, now_ms)
