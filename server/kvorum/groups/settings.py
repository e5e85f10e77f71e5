"""The settings of a group coordinator; times in milliseconds."""

from dataclasses import dataclass
from typing import Annotated, Final

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""The time for which a new member may wait in a join; a constant in Kafka too."""


def _minutes(minutes: int) -> int:
    return minutes * 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCoordinatorSettings:
    """The broker's configuration of classic groups and of offsets, with Kafka's defaults."""

    group_max_size: Annotated[int, "group.max.size"] = 2**31 - 1
    group_initial_rebalance_delay_ms: Annotated[int, "group.initial.rebalance.delay.ms"] = 3000
    offset_metadata_max_bytes: Annotated[int, "offset.metadata.max.bytes"] = 4096
    """Counted in UTF-16 units, in spite of its name in Kafka."""
    offsets_retention_ms: Annotated[int, "offsets.retention.minutes", _minutes] = 10080 * 60_000
    offsets_retention_check_interval_ms: Annotated[int, "offsets.retention.check.interval.ms"] = (
        600_000
    )
