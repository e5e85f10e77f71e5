"""What is collected while a replica runs, for the metrics that are no state of it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from kvorum.node.metrics.sensors import WindowedSensor
from kvorum.raft.roles import Candidate, Follower, Leader, Prospective, Role


@dataclass(frozen=True, slots=True)
class _Appended:
    """Records of this leader's that are not committed yet."""

    end_offset: int
    record_count: int
    at_ms: float


class RaftMeasures:
    """Fed by the driver; each of its verbs takes the time as the driver has it."""

    def __init__(self, now_ms: float) -> None:
        self.commit_latency_ms = WindowedSensor(now_ms)
        self.election_latency_ms = WindowedSensor(now_ms)
        self.appended_records = WindowedSensor(now_ms)
        self.fetched_records = WindowedSensor(now_ms)
        self._uncommitted: deque[_Appended] = deque()
        self._looking_since_ms: float | None = None
        self._role: Role | None = None

    def appended(self, record_count: int, *, end_offset: int, now_ms: float) -> None:
        """Note that this leader appended a batch."""
        self.appended_records.record(record_count, now_ms)
        self._uncommitted.append(_Appended(end_offset, record_count, now_ms))

    def fetched(self, record_count: int, *, now_ms: float) -> None:
        """Note that records of the leader's were appended."""
        self.fetched_records.record(record_count, now_ms)

    def committed(self, high_watermark: int, *, now_ms: float) -> None:
        """Note the high watermark; the latency of a batch is counted by record, as in Kafka."""
        waiting = self._uncommitted
        while waiting and waiting[0].end_offset <= high_watermark:
            batch = waiting.popleft()
            latency_ms = max(now_ms - batch.at_ms, 0.0) / batch.record_count
            self.commit_latency_ms.record(latency_ms, now_ms)

    def took_role(self, role: Role, *, now_ms: float) -> None:
        """Note the role after a verb, the same as before or another one."""
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
