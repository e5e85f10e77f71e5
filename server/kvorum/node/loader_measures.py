"""What is collected while the log is folded in, for the metrics that are no state of the image."""

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
    """Counts leaders that came from outside the ISR, as their records pass by."""

    def __init__(self) -> None:
        self.unclean = 0
        self.from_elr = 0

    def watch(
        self, image: MetadataImage, records: Iterable[FramedRecord]
    ) -> Iterator[FramedRecord]:
        """Yield `records`, which are about to be folded into `image`."""
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
        """Count a change; `changed` are the eligible leaders that records before it have set."""
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


class LoaderMeasures:
    """Fed by the loader."""

    def __init__(self, now_ms: float) -> None:
        self.snapshot_count = 0
        self.batch_us = LatestValues()
        self.batch_sizes = LatestValues()
        self.busy_ms = WindowedSensor(now_ms)
        self.elections = ElectionCounts()

    def caught_up(self) -> None:
        """Forget the elections of the past: those of the log as it was found are no news."""
        self.elections = ElectionCounts()

    def folded(self, record_count: int, *, started_ms: float, ended_ms: float) -> None:
        """Note that a batch was folded in."""
        duration_ms = ended_ms - started_ms
        self.batch_sizes.record(record_count)
        self.batch_us.record(duration_ms * 1000)
        self.busy_ms.record(duration_ms, ended_ms)

    def idle_ratio(self, now_ms: float) -> float:
        """Return the share of time in which nothing was folded in."""
        return max(1 - self.busy_ms.rate_per_second(now_ms) / 1000, 0.0)
