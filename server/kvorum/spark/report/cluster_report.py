"""Everything that a cluster's page shows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Final

from kvorum.spark.history.partition_rows import Condition
from kvorum.spark.report.availability import AvailabilityFacts, availability_facts
from kvorum.spark.report.brokers import BrokerFacts, broker_facts
from kvorum.spark.report.events import Event, latest_events
from kvorum.spark.report.features import FeatureLevel, feature_levels
from kvorum.spark.report.leadership import LeadershipFacts, leadership_facts
from kvorum.spark.report.observed_time import window_of
from kvorum.spark.report.quorum import QuorumFacts, quorum_facts
from kvorum.spark.report.tables_directory import ClusterTables
from kvorum.spark.report.time_window import TimeWindow
from kvorum.spark.report.value_history import ValueHistory, value_histories


@unique
class Trouble(IntEnum):
    """How much is wrong with a cluster."""

    NONE = 0
    DEGRADED = 1
    CRITICAL = 2


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The facts of one cluster over a window."""

    window: TimeWindow
    availability: AvailabilityFacts
    leadership: LeadershipFacts
    brokers: tuple[BrokerFacts, ...]
    quorum: QuorumFacts
    features: tuple[FeatureLevel, ...]
    values: tuple[ValueHistory, ...]
    events: tuple[Event, ...]

    def open_count(self, condition: Condition) -> int:
        """Return how many partitions are in a condition at the window's end."""
        return self.availability.conditions[condition].open_count

    @property
    def registered(self) -> tuple[BrokerFacts, ...]:
        """The brokers that are registered at the window's end."""
        return tuple(broker for broker in self.brokers if broker.state is not None)

    @property
    def out_of_service(self) -> tuple[BrokerFacts, ...]:
        """The registered brokers that are fenced or in controlled shutdown at the window's end."""
        return tuple(broker for broker in self.registered if not broker.is_in_service)

    @property
    def trouble(self) -> Trouble:
        """How much is wrong at the window's end."""
        if self.open_count(Condition.OFFLINE) or self.open_count(Condition.UNDER_MIN_ISR):
            return Trouble.CRITICAL
        if self.open_count(Condition.UNDER_REPLICATED) or self.out_of_service:
            return Trouble.DEGRADED
        return Trouble.NONE


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """A cluster and its facts, or the reason for which there are none."""

    cluster_id: str
    facts: ClusterFacts | None
    reason: str = ""

    @property
    def order(self) -> tuple[int, ...]:
        """What clusters are sorted by: most trouble first."""
        if self.facts is None:
            return (0,) * (len(Condition) + 2)
        counts = (-self.facts.open_count(condition) for condition in _WORST_FIRST)
        return (-self.facts.trouble, *counts, -len(self.facts.out_of_service))


_NO_TIMES: Final = "Nothing has happened in this cluster: its tables have no row with a time."
_WORST_FIRST: Final = (Condition.OFFLINE, Condition.UNDER_MIN_ISR, Condition.UNDER_REPLICATED)


def cluster_report(
    tables: ClusterTables, *, since_ms: int | None = None, until_ms: int | None = None
) -> ClusterReport:
    """Return the report of a cluster from `since_ms` to `until_ms`; all that there is by default.

    A report without facts is that of tables without a row that has a time. Raises `TablesError`
    for files that cannot be read, and `NothingCoveredError` for a window without any time that the
    tables cover.
    """
    window = window_of(tables, since_ms=since_ms, until_ms=until_ms)
    if window is None:
        return ClusterReport(tables.cluster_id, None, _NO_TIMES)
    brokers = broker_facts(tables, window)
    quorum = quorum_facts(tables, window)
    values = value_histories(tables, window)
    registered = frozenset(one.broker_id for one in brokers if one.state is not None)
    facts = ClusterFacts(
        window=window,
        availability=availability_facts(tables, window),
        leadership=leadership_facts(tables, window, registered),
        brokers=brokers,
        quorum=quorum,
        features=feature_levels(tables, window),
        values=values,
        events=latest_events(tables, window, quorum=quorum, values=values),
    )
    return ClusterReport(tables.cluster_id, facts)
