"""Measurements of a running replica, for the metrics that its state does not contain."""

from collections import deque
from typing import NamedTuple

from kvorum.node.metrics.sensors import WindowedSensor
from kvorum.raft.roles import Candidate, Follower, Leader, Prospective, Role


class _Appended(NamedTuple):
    """Records of this leader that are not yet committed."""

    end_offset: int
    record_count: int
    at_ms: float


class RaftMeasures:
    """The measurements that the driver reports, each with its time."""

    def __init__(self, now_ms: float) -> None:
        self.commit_latency_ms = WindowedSensor(now_ms)
        self.election_latency_ms = WindowedSensor(now_ms)
        self.appended_records = WindowedSensor(now_ms)
        self.fetched_records = WindowedSensor(now_ms)
        self._uncommitted: deque[_Appended] = deque()
        self._looking_since_ms: float | None = None
        self._role: Role | None = None

    def appended(self, record_count: int, *, end_offset: int, now_ms: float) -> None:
        """Record that this leader appended a batch."""
        self.appended_records.record(record_count, now_ms)
        self._uncommitted.append(_Appended(end_offset, record_count, now_ms))

    def fetched(self, record_count: int, *, now_ms: float) -> None:
        """Record that fetched records were appended."""
        self.fetched_records.record(record_count, now_ms)

    def committed(self, high_watermark: int, *, now_ms: float) -> None:
        """Record the high watermark; the latency of a batch counts once per record, as in Kafka."""
        waiting = self._uncommitted
        while waiting and waiting[0].end_offset <= high_watermark:
            batch = waiting.popleft()
            latency_ms = max(now_ms - batch.at_ms, 0.0) / batch.record_count
            self.commit_latency_ms.record(latency_ms, now_ms)

    def took_role(self, role: Role, *, now_ms: float) -> None:
        """Record the role after a verb, the same one as before or another one."""
        if role is self._role:
            return
        self._role = role
        if isinstance(role, Prospective | Candidate):
            self._looking_since_ms = now_ms
        elif isinstance(role, Leader | Follower) and self._looking_since_ms is not None:
            self.election_latency_ms.record(now_ms - self._looking_since_ms, now_ms)
            self._looking_since_ms = None
        if not isinstance(role, Leader):
            self._uncommitted.clear()
