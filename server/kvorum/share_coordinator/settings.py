"""The settings of a share coordinator; times in milliseconds."""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCoordinatorSettings:
    """The broker's configuration of the state of share partitions, with Kafka's defaults."""

    update_records_per_snapshot: Annotated[
        int, "share.coordinator.snapshot.update.records.per.snapshot"
    ] = 500
    """The updates of a share partition that are written before its next snapshot."""
    cold_partition_snapshot_interval_ms: Annotated[
        int, "share.coordinator.cold.partition.snapshot.interval.ms"
    ] = 300_000
    """The age of a snapshot at which there is another one in any case."""
