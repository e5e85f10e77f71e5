"""One change of a partition, and the reasons for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique
from typing import NamedTuple

from kvorum.spark.history.tables import LeaderChangeCause, PartitionTimelineRow


@unique
class ReasonKind(StrEnum):
    """Kinds of reasons, as far as the log contains them; causes of leader changes among them."""

    PARTITION_CREATED = LeaderChangeCause.PARTITION_CREATED.value
    OLDER_THAN_LOG = "older_than_log"
    BROKER_FENCED = LeaderChangeCause.BROKER_FENCED.value
    CONTROLLED_SHUTDOWN = LeaderChangeCause.CONTROLLED_SHUTDOWN.value
    BROKER_UNREGISTERED = LeaderChangeCause.BROKER_UNREGISTERED.value
    BROKER_RESTARTED = LeaderChangeCause.BROKER_RESTARTED.value
    DIRECTORY_FAILED = LeaderChangeCause.DIRECTORY_FAILED.value
    BROKER_UNFENCED = LeaderChangeCause.BROKER_UNFENCED.value
    PREFERRED_ELECTION = LeaderChangeCause.PREFERRED_ELECTION.value
    UNCLEAN_ELECTION = LeaderChangeCause.UNCLEAN_ELECTION.value
    REASSIGNMENT_BEGUN = "reassignment_begun"
    REASSIGNMENT_COMPLETED = "reassignment_completed"
    REASSIGNMENT_CANCELLED = "reassignment_cancelled"
    REASSIGNMENT_CHANGED = "reassignment_changed"
    ISR_SHRUNK = "isr_shrunk"
    ISR_EXPANDED = "isr_expanded"
    LEADER_RECOVERED = "leader_recovered"
    DIRECTORY_ASSIGNED = "directory_assigned"
    ELR_CHANGED = "elr_changed"
    UNKNOWN = LeaderChangeCause.UNKNOWN.value


class Reason(NamedTuple):
    """A reason, with the brokers that it is about; none for what is about the partition."""

    kind: ReasonKind
    brokers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """A record that changed a partition: the state before it (None for the first) and after it.

    `epoch` is that of the controller. The place and time of the record are those where `after`
    begins.
    """

    before: PartitionTimelineRow | None
    after: PartitionTimelineRow
    epoch: int
    reasons: tuple[Reason, ...]

    @property
    def offset(self) -> int:
        """The offset of the record."""
        return self.after.from_offset

    @property
    def timestamp_ms(self) -> int:
        """The time of the record, in milliseconds since 1970."""
        return self.after.from_time
