"""Everything that a cluster's page shows, over the window of time that is asked for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kvorum.history.tables import Condition
from kvorum.spark.report.availability import AvailabilityFacts, availability_facts
from kvorum.spark.report.brokers import BrokerFacts, LeadershipFacts, broker_facts, leadership_facts
from kvorum.spark.report.events import Event, latest_events
from kvorum.spark.report.log_files import LogFileFacts, Trouble, log_file_facts
from kvorum.spark.report.quorum import ControllerFacts, QuorumFacts, controller_facts, quorum_facts
from kvorum.spark.report.rows import MISSING, Int64s
from kvorum.spark.report.tables_directory import ClusterTables, NothingCoveredError
from kvorum.spark.report.texts import time_text
from kvorum.spark.report.time_window import SECOND_MS, TimeWindow
from kvorum.spark.report.value_history import (
    FeatureLevel,
    ValueHistory,
    feature_levels,
    value_histories,
)

_NO_TIMES: Final = "Nothing is known of this cluster: its tables have no row with a time."
WORST_FIRST: Final = (Condition.OFFLINE, Condition.UNDER_MIN_ISR, Condition.UNDER_REPLICATED)
"""The conditions in the order in which clusters are compared."""

_TIME_COLUMNS: Final = (
    ("quorum_epochs", ("from_time", "to_time")),
    ("quorum_voters", ("from_time", "to_time")),
    ("partition_timeline", ("from_time", "to_time")),
    ("broker_states", ("from_time", "to_time")),
    ("config_history", ("time",)),
    ("acl_history", ("time",)),
    ("quota_history", ("time",)),
    ("scram_history", ("time",)),
    ("feature_history", ("time",)),
    ("delegation_token_history", ("time",)),
)
"""The columns from which the time of a cluster's tables is taken."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The facts of one cluster over a window."""

    window: TimeWindow
    availability: AvailabilityFacts
    leadership: LeadershipFacts
    brokers: tuple[BrokerFacts, ...]
    quorum: QuorumFacts
    controllers: tuple[ControllerFacts, ...]
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
    def unregistered_voters(self) -> tuple[int, ...]:
        """The voters that are not registered, none where no controller has registered."""
        registered = {one.controller_id for one in self.controllers}
        return tuple(one for one in self.quorum.voters if registered and one not in registered)

    @property
    def is_stopped(self) -> bool:
        """Whether all brokers are out of service at the window's end, and left in good order.

        One that leads nothing is fenced at once when it asks for its controlled shutdown, so the
        log shows the order by the partitions alone.
        """
        is_any_in_service = any(one.is_in_service for one in self.registered)
        return (
            bool(self.registered)
            and not is_any_in_service
            and self.availability.was_led_until_shutdown
        )

    @property
    def trouble(self) -> Trouble:
        """The trouble at the window's end, which a stop in good order only degrades."""
        if self.is_stopped:
            return Trouble.DEGRADED
        if self.open_count(Condition.OFFLINE) or self.open_count(Condition.UNDER_MIN_ISR):
            return Trouble.CRITICAL
        if self.open_count(Condition.UNDER_REPLICATED) or self.out_of_service:
            return Trouble.DEGRADED
        return Trouble.NONE


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """A cluster with its facts, or the reason why they are missing, and the facts of its files."""

    cluster_id: str
    files: LogFileFacts
    facts: ClusterFacts | None
    reason: str = ""

    @property
    def trouble(self) -> Trouble:
        """The trouble of the cluster at the window's end, or of the files of its log."""
        of_cluster = Trouble.NONE if self.facts is None else self.facts.trouble
        return max(of_cluster, self.files.trouble)

    @property
    def order(self) -> tuple[int, ...]:
        """The order of clusters: most trouble first, and of equal trouble that of files."""
        files = (-self.files.trouble, -len(self.files.diverged), -len(self.files.damages))
        if self.facts is None:
            return (-self.trouble, *files, *(0,) * (len(Condition) + 1))
        counts = (-self.facts.open_count(condition) for condition in WORST_FIRST)
        return (-self.trouble, *files, *counts, -len(self.facts.out_of_service))


def cluster_report(
    tables: ClusterTables, *, since_ms: int | None = None, until_ms: int | None = None
) -> ClusterReport:
    """Return the report of a cluster from `since_ms` to `until_ms`; all that there is by default.

    The facts of the files are those of the last run, whatever time is asked for. A report without
    facts of the cluster is that of tables without a row that has a time. Raises `TablesError`
    for files that cannot be read, and `NothingCoveredError` for a window without any time that the
    tables cover.
    """
    window = window_of(tables, since_ms=since_ms, until_ms=until_ms)
    if window is None:
        return ClusterReport(tables.cluster_id, log_file_facts(tables), None, _NO_TIMES)
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
        controllers=controller_facts(tables, window),
        features=feature_levels(tables, window),
        values=values,
        events=latest_events(tables, window, quorum=quorum, values=values),
    )
    return ClusterReport(tables.cluster_id, log_file_facts(tables), facts)


def window_of(
    tables: ClusterTables, *, since_ms: int | None, until_ms: int | None
) -> TimeWindow | None:
    """Return the window from `since_ms` to `until_ms`, limited to the time that the tables cover.

    Returns None where no table has a time. Raises `NothingCoveredError` for a window without any of
    the time that the tables cover.
    """
    columns = (known for known in _known_times(tables) if len(known))
    extremes = [(int(known.min()), int(known.max())) for known in columns]
    if not extremes:
        return None
    first = min(begin for begin, _ in extremes)
    last = max(end for _, end in extremes)
    begin = first if since_ms is None else max(first, since_ms)
    end = last if until_ms is None else min(last, until_ms)
    if begin > end:
        raise NothingCoveredError(
            f"the tables of cluster {tables.cluster_id!r} cover {time_text(first)} to "
            f"{time_text(last)} UTC, and nothing of the time that is asked for"
        )
    # Charts need some width, also those of a log with one time alone.
    return TimeWindow(min(begin, end - SECOND_MS), end)


def _known_times(tables: ClusterTables) -> Iterator[Int64s]:
    """Yield the times of each column."""
    for table, names in _TIME_COLUMNS:
        rows = tables.read(table, names)
        for name in names:
            times = rows.times_ms(name)
            yield times[times != MISSING]
    # The end of an open interval is the time of the log's last record.
    rows = tables.read("availability", ("from_time", "duration_ms"))
    begins, durations = rows.times_ms("from_time"), rows.integers("duration_ms")
    known = (begins != MISSING) & (durations != MISSING)
    yield begins[known] + durations[known]
