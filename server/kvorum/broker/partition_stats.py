"""Counts that the partitions of a broker share: records, and changes of ISRs."""

from __future__ import annotations

from dataclasses import dataclass, field

from kvorum.broker.broker_topic_stats import BrokerTopicStats


@dataclass(slots=True)
class PartitionStats:
    """Counts since the start: records, and what the controller said to changes of ISRs."""

    topics: BrokerTopicStats = field(default_factory=BrokerTopicStats)
    isr_expands: int = 0
    isr_shrinks: int = 0
    failed_isr_updates: int = 0
