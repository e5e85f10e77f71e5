"""The measures of a share coordinator (Kafka's ShareCoordinatorMetrics)."""

from kvorum.node.metrics.sensors import WindowedSensor


class ShareCoordinatorMetrics:
    """The writes of the state of share partitions, and the times of the requests for them."""

    def __init__(self, now_ms: float) -> None:
        self.write_count = 0
        self.writes = WindowedSensor(now_ms)
        """Each write has the value 1."""
        self.write_times_ms = WindowedSensor(now_ms)

    def record_write(self, now_ms: float) -> None:
        """Count the write of one share partition, one that is refused too."""
        self.write_count += 1
        self.writes.record(1, now_ms)
