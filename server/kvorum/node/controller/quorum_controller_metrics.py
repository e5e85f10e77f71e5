"""Kafka's QuorumControllerMetrics: counts and times that are not part of the metadata."""

from kvorum.node.metrics.sensors import LatestValues, WindowedSensor


class QuorumControllerMetrics:
    """The QuorumController's measurements; `last_append_ms` is wall-clock time, None at first."""

    def __init__(self, now_ms: float) -> None:
        self.operation_count = 0
        self.late_count = 0
        self.failure_count = 0
        self.new_leader_count = 0
        self.waiting_ms = LatestValues()
        self.processing_ms = LatestValues()
        self.busy_ms = WindowedSensor(now_ms)
        self.last_append_ms: int | None = None

    def waited(self, duration_ms: float) -> None:
        """Record how long a request or task waited for its turn."""
        self.waiting_ms.record(duration_ms)

    def processed(self, *, started_ms: float, ended_ms: float) -> None:
        """Record the time in which the controller worked on one request or task."""
        self.operation_count += 1
        duration_ms = ended_ms - started_ms
        self.processing_ms.record(duration_ms)
        self.busy_ms.record(duration_ms, ended_ms)

    def idle_ratio(self, now_ms: float) -> float:
        """Return the share of time in which the controller was idle."""
        return max(1 - self.busy_ms.rate_per_second(now_ms) / 1000, 0.0)
