"""Kafka's MetadataLoaderMetrics: counts and times of the loader that no image contains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import RECOVERING
from kvorum.node.metrics.sensors import LatestValues, WindowedSensor
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.primitives import Message

FramedRecord = tuple[Message, int, int]
"""A record with its version and its offset."""


class ElectionCounts:
    """Counts elections outside the ISR in applied records: unclean ones, and those from the ELR."""

    def __init__(self) -> None:
        self.unclean = 0
        self.from_elr = 0

    def watch(
        self, image: MetadataImage, records: Iterable[FramedRecord]
    ) -> Iterator[FramedRecord]:
        """Yield `records`, which are about to be applied to `image`, and count their elections."""
        changed: dict[tuple[bytes, int], tuple[int, ...]] = {}
        for record in records:
            message = record[0]
            if type(message) is PartitionChangeRecord:
                self._note(image, message, changed)
            yield record

    def _note(
        self,
        image: MetadataImage,
        change: PartitionChangeRecord,
        changed: dict[tuple[bytes, int], tuple[int, ...]],
    ) -> None:
        """Count a change; `changed` are the eligible leaders that earlier records have set."""
        key = (change.topic_id, change.partition_id)
        if change.leader_recovery_state == RECOVERING:
            self.unclean += 1
        if change.leader >= 0:
            eligible = changed.get(key)
            if eligible is None:
                partition = image.topics.partition(*key)
                eligible = () if partition is None else partition.elr
            if change.leader in eligible:
                self.from_elr += 1
        if change.eligible_leader_replicas is not None:
            changed[key] = tuple(change.eligible_leader_replicas)


class MetadataLoaderMetrics:
    """The measurements that the loader reports."""

    def __init__(self, now_ms: float) -> None:
        self.snapshot_count = 0
        self.batch_us = LatestValues()
        self.batch_sizes = LatestValues()
        self.busy_ms = WindowedSensor(now_ms)
        self.elections = ElectionCounts()

    def caught_up(self) -> None:
        """Discard the counted elections: those in the log as it was at the start are history."""
        self.elections = ElectionCounts()

    def folded(self, record_count: int, *, started_ms: float, ended_ms: float) -> None:
        """Record that a batch was applied."""
        duration_ms = ended_ms - started_ms
        self.batch_sizes.record(record_count)
        self.batch_us.record(duration_ms * 1000)
        self.busy_ms.record(duration_ms, ended_ms)

    def idle_ratio(self, now_ms: float) -> float:
        """Return the share of time in which no batch was being applied."""
        return max(1 - self.busy_ms.rate_per_second(now_ms) / 1000, 0.0)
