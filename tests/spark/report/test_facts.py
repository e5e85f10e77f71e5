"""Facts of a cluster, compared with what happened to it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.spark.report.made_up_cluster import (
    BEGIN_MS,
    HOUR_MS,
    MINUTE_MS,
    MadeUpCluster,
    healthy_cluster,
    small_cluster,
)
from tests.spark.report.read_page import clusters_in
from tests.spark.report.written_tables import (
    CLUSTER,
    cluster_tables,
    facts_of,
    rows_of,
    write_log,
    write_rows,
    written_index,
)

from kvorum.history.tables import BrokerState, BrokerStateRow, Condition, QuorumEpochRow
from kvorum.metadata.acl_codes import AclOperation, AclResourceType, PatternType, PermissionType
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.metadata_version import LATEST_PRODUCTION_METADATA_VERSION
from kvorum.spark.report.cluster_report import ClusterFacts, cluster_report
from kvorum.spark.report.events import group_labels
from kvorum.spark.report.log_files import Trouble
from kvorum.spark.report.rows import MISSING, Int64s
from kvorum.spark.report.sections.health import verdict
from kvorum.spark.report.table_files import TablesError
from kvorum.spark.report.tables_directory import TablesDirectory
from kvorum.spark.report.time_window import (
    DAY_MS,
    STEPS_MAX,
    Intervals,
    TimeWindow,
    highest_counts,
    mean_counts,
)
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.k_raft_version_record import KRaftVersionRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.voters_record import VotersRecord


def facts(cluster: MadeUpCluster, directory: Path) -> ClusterFacts:
    return facts_of(cluster_tables(directory, cluster.records))


def test_a_healthy_cluster(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.later(HOUR_MS)
    cluster.configure("a", "retention.ms", "1000")
    found = facts(cluster, tmp_path)
    assert found.trouble is Trouble.NONE
    assert (found.window.begin_ms, found.window.end_ms) == (BEGIN_MS, BEGIN_MS + HOUR_MS)
    assert found.leadership.partition_count == 3
    assert [(one.broker_id, one.leader_count) for one in found.leadership.loads] == [(1, 2), (2, 1)]
    assert found.leadership.led[1].tolist() == pytest.approx([2.0] * len(found.leadership.led[1]))
    assert found.leadership.skew == pytest.approx(2 * 2 / 3)
    assert [one.text for one in found.features] == [LATEST_PRODUCTION_METADATA_VERSION.text]
    assert (found.quorum.voters, found.quorum.election_count) == ((101, 102, 103), 1)


def test_partitions_offline_with_the_cause_and_how_it_ended(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.later(HOUR_MS)
    cluster.fence(1)
    cluster.later(7 * MINUTE_MS)
    cluster.start(1)
    cluster.later(2 * MINUTE_MS)
    cluster.sync(1)
    found = facts(cluster, tmp_path)
    (day,) = found.availability.offline_days
    (outage,) = day.outages
    assert (day.day_ms, day.partition_count, day.total_ms) == (BEGIN_MS, 1, 7 * MINUTE_MS)
    assert (outage.partition, outage.begin_ms) == ("b-0", BEGIN_MS + HOUR_MS)
    assert outage.duration_ms == 7 * MINUTE_MS
    assert outage.began_with is not None
    assert (outage.began_with.cause, outage.began_with.old_leader) == ("broker_fenced", 1)
    assert outage.ended_with is not None
    assert (outage.ended_with.cause, outage.ended_with.new_leader) == ("broker_unfenced", 1)
    (incident,) = found.availability.slowest[Condition.UNDER_REPLICATED]
    assert (incident.partition_count, incident.longest.duration_ms) == (2, 9 * MINUTE_MS)
    (missing,) = incident.longest.missing
    assert (missing.broker_id, missing.out_of_service_ms) == (1, 7 * MINUTE_MS)


def test_a_replica_that_lags_is_missing_while_its_broker_is_in_service(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.later(HOUR_MS)
    cluster.lag(2, 1)
    cluster.later(MINUTE_MS)
    found = facts(cluster, tmp_path)
    assert found.open_count(Condition.UNDER_REPLICATED) == 1
    assert found.trouble is Trouble.DEGRADED
    (incident,) = found.availability.conditions[Condition.UNDER_REPLICATED].open
    assert [(one.broker_id, one.out_of_service_ms) for one in incident.longest.missing] == [(2, 0)]


def test_an_outage_over_midnight_is_part_of_both_days(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.later(23 * HOUR_MS)
    cluster.fence(1)
    cluster.later(3 * HOUR_MS)
    cluster.start(1)
    found = facts(cluster, tmp_path)
    days = [(day.day_ms - BEGIN_MS, day.total_ms) for day in found.availability.offline_days]
    assert days == [(DAY_MS, 2 * HOUR_MS), (0, HOUR_MS)]


def test_an_outage_that_ends_at_midnight_is_not_part_of_the_next_day(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.later(23 * HOUR_MS)
    cluster.fence(1)
    cluster.later(HOUR_MS)
    cluster.start(1)
    cluster.sync(1)
    cluster.later(HOUR_MS)
    cluster.configure("a", "retention.ms", "1000")
    days = facts(cluster, tmp_path / "one").availability.offline_days
    assert [day.day_ms for day in days] == [BEGIN_MS]
    cluster.fence(1)
    cluster.later(MINUTE_MS)
    cluster.start(1)
    days = facts(cluster, tmp_path / "two").availability.offline_days
    assert [(day.day_ms - BEGIN_MS, len(day.outages)) for day in days] == [(DAY_MS, 1), (0, 1)]


@pytest.mark.parametrize(
    ("leave", "trouble"),
    [(MadeUpCluster.shut_down, Trouble.DEGRADED), (MadeUpCluster.fence, Trouble.CRITICAL)],
)
def test_a_cluster_that_was_stopped_in_good_order_is_not_critical(
    tmp_path: Path, leave: Callable[[MadeUpCluster, int], None], trouble: Trouble
) -> None:
    cluster = small_cluster()
    cluster.later(HOUR_MS)
    cluster.shut_down(1)
    cluster.later(MINUTE_MS)
    leave(cluster, 2)
    found = facts(cluster, tmp_path)
    assert found.open_count(Condition.OFFLINE) == 3
    assert found.trouble is trouble
    assert ("is stopped" in verdict(found)) is (trouble is Trouble.DEGRADED)


def test_a_fenced_broker_without_partitions_has_not_left_in_good_order(tmp_path: Path) -> None:
    cluster = MadeUpCluster(1)
    cluster.later(HOUR_MS)
    cluster.fence(1)
    found = facts(cluster, tmp_path)
    assert found.trouble is Trouble.DEGRADED
    assert "out of service" in verdict(found)


def test_health_is_that_of_the_end_that_is_asked_for(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.configure("", "min.insync.replicas", "2", ResourceType.BROKER)
    cluster.later(HOUR_MS)
    cluster.fence(1)
    cluster.later(HOUR_MS)
    cluster.start(1)
    cluster.sync(1)
    tables = cluster_tables(tmp_path, cluster.records)
    during = facts_of(tables, until_ms=BEGIN_MS + HOUR_MS + MINUTE_MS)
    assert during.trouble is Trouble.CRITICAL
    assert during.open_count(Condition.OFFLINE) == 1
    assert during.open_count(Condition.UNDER_MIN_ISR) == 2
    assert [one.broker_id for one in during.out_of_service] == [1]
    assert [load.leader_count for load in during.leadership.loads] == [0, 2]
    after = facts_of(tables, since_ms=BEGIN_MS + 2 * HOUR_MS - MINUTE_MS)
    assert after.trouble is Trouble.NONE
    assert after.availability.conditions[Condition.OFFLINE].total_ms == MINUTE_MS
    # States that began before the window have their true begin.
    ((outage,),) = [day.outages for day in after.availability.offline_days]
    assert (outage.begin_ms, outage.duration_ms) == (BEGIN_MS + HOUR_MS, HOUR_MS)


def test_what_ended_before_the_window_is_not_part_of_it(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.fence(1)
    cluster.later(HOUR_MS)
    cluster.start(1)
    cluster.later(HOUR_MS)
    cluster.configure("a", "retention.ms", "1000")
    tables = cluster_tables(tmp_path, cluster.records)
    for since_ms in (BEGIN_MS + HOUR_MS, BEGIN_MS + HOUR_MS + 1):
        found = facts_of(tables, since_ms=since_ms)
        assert found.availability.conditions[Condition.OFFLINE].interval_count == 0


def test_a_feature_level_is_that_of_the_end_that_is_asked_for(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.later(HOUR_MS)
    cluster.set_feature("group.version", 1)
    tables = cluster_tables(tmp_path, cluster.records)
    before, after = facts_of(tables, until_ms=BEGIN_MS + MINUTE_MS), facts_of(tables)
    assert [one.feature for one in before.features] == ["metadata.version"]
    assert [one.feature for one in after.features] == ["group.version", "metadata.version"]


def test_brokers_out_of_service(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.later(HOUR_MS)
    cluster.shut_down(1)
    cluster.later(MINUTE_MS)
    cluster.fence(1)
    cluster.later(2 * MINUTE_MS)
    cluster.start(1)
    cluster.later(HOUR_MS)
    cluster.fence(2)
    cluster.later(MINUTE_MS)
    cluster.configure("a", "retention.ms", "1000")
    first, second = facts(cluster, tmp_path).brokers
    assert first.state is BrokerState.UNFENCED
    assert (first.incarnation_count, first.fenced_count) == (2, 1)
    assert (first.out_of_service_ms, first.longest_ms) == (3 * MINUTE_MS, 3 * MINUTE_MS)
    assert (second.state, second.out_of_service_ms) == (BrokerState.FENCED, MINUTE_MS)
    assert second.state_since_ms == BEGIN_MS + 2 * HOUR_MS + 3 * MINUTE_MS


def test_a_broker_that_flaps_is_drawn_with_few_spans(tmp_path: Path) -> None:
    cluster = small_cluster()
    for _ in range(300):
        cluster.later(MINUTE_MS)
        cluster.fence(1)
        cluster.later(1000)
        cluster.unfence(1)
    first, _ = facts(cluster, tmp_path).brokers
    assert first.fenced_count == 300
    assert len(first.spans) < 20
    assert sum(each.end_ms - each.begin_ms for each in first.spans) == 300 * (MINUTE_MS + 1000)


def test_elections_with_epochs_that_left_no_record(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.later(HOUR_MS)
    cluster.elect(102, lost=2)
    cluster.later(3 * HOUR_MS)
    cluster.elect(101)
    quorum = facts(cluster, tmp_path).quorum
    assert [(one.epoch, one.leader, one.lost_count) for one in quorum.epochs] == [
        (1, 101, 0),
        (4, 102, 2),
        (5, 101, 0),
    ]
    assert (quorum.election_count, quorum.lost_count) == (3, 2)
    assert [(one.leader, one.led_ms) for one in quorum.shares] == [
        (102, 3 * HOUR_MS),
        (101, HOUR_MS),
    ]


def test_leader_changes_of_one_cause_are_one_event(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.later(HOUR_MS)
    cluster.fence(1)
    events = facts(cluster, tmp_path).events
    (event,) = [one for one in events if one.kind == "leaders" and one.time_ms > BEGIN_MS]
    assert event.text == (
        "Broker 1 was fenced: 1 partition changed leader, 1 partition lost the leader"
    )


def test_groups_end_at_pauses_and_do_not_mix_keys() -> None:
    keys = np.array([1, 1, 2, 1, 1], dtype=np.int64)
    times = np.array([0, 10, 11, 20, 31], dtype=np.int64)
    assert group_labels(keys, times, gap_ms=10).tolist() == [0, 0, 2, 0, 1]


def test_a_window_without_any_time_of_the_tables_is_an_error(tmp_path: Path) -> None:
    tables = cluster_tables(tmp_path, small_cluster().records)
    with pytest.raises(TablesError, match="cover 2026-11-16 00:00:00 to 2026"):
        cluster_report(tables, since_ms=BEGIN_MS + DAY_MS)
    with pytest.raises(TablesError, match="nothing of the time that is asked for"):
        cluster_report(tables, until_ms=BEGIN_MS - 1)


EDGES = np.array([0, 10, 20, 30], dtype=np.int64)
WINDOW = TimeWindow(0, 30)


def intervals(*spans: tuple[int, int]) -> Intervals:
    begins, ends = zip(*spans, strict=True) if spans else ((), ())
    return Intervals.within(numbers(*begins), numbers(*ends), WINDOW)


def numbers(*values: int) -> Int64s:
    return np.array(values, dtype=np.int64)


def test_means_weigh_by_time() -> None:
    assert mean_counts(intervals((0, 5), (5, 25), (20, 25)), EDGES).tolist() == [1.0, 1.0, 1.0]
    assert mean_counts(intervals((2, 4), (3, 4)), EDGES).tolist() == pytest.approx([0.3, 0, 0])


@pytest.mark.parametrize(
    ("spans", "counts"),
    [
        ([(12, 13)], [0, 1, 0]),  # a short interval counts in its step
        ([(0, 12), (12, 30)], [1, 1, 1]),  # one that follows another does not count twice
        ([(0, 11), (5, 21), (6, 7)], [3, 2, 1]),  # nor is one new where it has begun before
        ([(0, 10)], [1, 0, 0]),  # an end at an edge belongs to the step before
        ([(10, 12)], [0, 1, 0]),  # a begin at an edge belongs to the step after
        ([], [0, 0, 0]),
    ],
)
def test_the_highest_count_is_that_of_any_moment_of_a_step(
    spans: list[tuple[int, int]], counts: list[int]
) -> None:
    assert highest_counts(intervals(*spans), EDGES).tolist() == counts


def test_without_intervals_the_means_are_0() -> None:
    assert mean_counts(intervals(), EDGES).tolist() == [0, 0, 0]


def test_counts_are_those_of_looking_at_each_millisecond() -> None:
    random = np.random.default_rng(7)
    begins = random.integers(0, 30, 50)
    spans = intervals(*((int(begin), int(begin + random.integers(0, 9))) for begin in begins))
    at_each = [int(((spans.begins <= ms) & (spans.ends > ms)).sum()) for ms in range(30)]
    steps = [at_each[begin : begin + 10] for begin in (0, 10, 20)]
    assert highest_counts(spans, EDGES).tolist() == [max(step) for step in steps]
    assert mean_counts(spans, EDGES).tolist() == pytest.approx([sum(step) / 10 for step in steps])


def test_intervals_are_cut_off_at_the_window_and_open_ones_end_with_it() -> None:
    found = Intervals.within(
        numbers(MISSING, 5, 40, 20, 8), numbers(3, MISSING, MISSING, 31, 6), WINDOW
    )
    assert found.begins.tolist() == [0, 5, 30, 20, 8]
    assert found.ends.tolist() == [3, 30, 30, 30, 8]
    assert found.is_open.tolist() == [False, True, False, True, False]


@pytest.mark.parametrize("length_ms", [1, 999, 3_600_000, 7 * DAY_MS, 400 * DAY_MS, 9000 * DAY_MS])
def test_steps_are_few_and_cover_the_window(length_ms: int) -> None:
    window = TimeWindow(1_794_787_212_345, 1_794_787_212_345 + length_ms)
    edges = window.edges_ms()
    assert (edges[0], edges[-1]) == (window.begin_ms, window.end_ms)
    assert 1 <= len(edges) - 1 <= STEPS_MAX
    assert (np.diff(edges) > 0).all()
    assert (edges[1:-1] % window.step_ms == 0).all()


def test_a_week_has_steps_of_an_hour() -> None:
    assert TimeWindow(0, 7 * DAY_MS).step_ms == 3_600_000


def test_partitions_that_recover_at_other_times_are_other_incidents(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.fence(1)
    cluster.later(MINUTE_MS)
    cluster.start(1)
    cluster.sync(1, share=0.5)
    cluster.later(HOUR_MS)
    cluster.sync(1)
    found = facts_of(cluster_tables(tmp_path, cluster.records)).availability.slowest
    assert [
        (each.partition_count, each.longest.duration_ms)
        for each in found[Condition.UNDER_REPLICATED]
    ] == [(1, HOUR_MS + MINUTE_MS), (1, MINUTE_MS)]


def test_a_broker_that_is_registered_again_was_not_fenced(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.later(MINUTE_MS)
    cluster.start(1)
    first, _ = facts_of(cluster_tables(tmp_path, cluster.records)).brokers
    assert (first.incarnation_count, first.fenced_count) == (2, 0)


def test_a_broker_that_is_still_fenced_is_out_of_service_and_not_behind(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.later(HOUR_MS)
    cluster.fence(1)
    cluster.later(5 * MINUTE_MS)
    cluster.idle()
    cluster.elect(102)
    found = facts_of(cluster_tables(tmp_path, cluster.records)).availability
    (incident,) = found.conditions[Condition.UNDER_REPLICATED].open
    missing = [(one.broker_id, one.out_of_service_ms) for one in incident.longest.missing]
    assert missing == [(1, 5 * MINUTE_MS)]


def test_a_replica_that_is_being_added_is_not_missing(tmp_path: Path) -> None:
    cluster = MadeUpCluster(3)
    cluster.create_topic("a", 1, replica_count=2)
    cluster.later(HOUR_MS)
    cluster.write(
        PartitionChangeRecord(
            0,
            cluster.topics["a"][0].topic_id,
            isr=[1],
            replicas=[1, 2, 3],
            adding_replicas=[3],
            directories=[bytes([each]) * 16 for each in (1, 2, 3)],
        )
    )
    found = facts_of(cluster_tables(tmp_path, cluster.records)).availability
    (incident,) = found.conditions[Condition.UNDER_REPLICATED].open
    assert [one.broker_id for one in incident.longest.missing] == [2]


def test_the_state_at_the_end_has_what_changed_in_its_last_millisecond(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.later(HOUR_MS)
    cluster.fence(1)
    tables = cluster_tables(tmp_path, cluster.records)
    before = facts_of(tables, until_ms=BEGIN_MS + HOUR_MS - 1)
    after = facts_of(tables, until_ms=BEGIN_MS + HOUR_MS)
    assert [load.leader_count for load in before.leadership.loads] == [2, 1]
    assert [load.leader_count for load in after.leadership.loads] == [0, 2]


def test_voters_are_those_of_the_end_in_whatever_order_the_rows_are(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.later(MINUTE_MS)
    three = [VotersRecord.Voter(each, bytes(16)) for each in (101, 102, 103)]
    cluster.write(KRaftVersionRecord(k_raft_version=1), VotersRecord(voters=three))
    cluster.later(HOUR_MS)
    cluster.write(VotersRecord(voters=three[:2]))
    cluster.later(HOUR_MS)
    cluster.elect(101)
    write_rows(tmp_path, reversed(rows_of(cluster.records)))
    tables = TablesDirectory(tmp_path).cluster(CLUSTER)
    assert facts_of(tables).quorum.voters == (101, 102)
    assert facts_of(tables, until_ms=BEGIN_MS + HOUR_MS).quorum.voters == (101, 102, 103)


def test_what_a_snapshot_begins_with_is_not_an_event(tmp_path: Path) -> None:
    rows = [
        row._replace(begins_earlier=True) if isinstance(row, BrokerStateRow) else row
        for row in rows_of(small_cluster().records)
    ]
    write_rows(tmp_path, rows)
    events = facts_of(TablesDirectory(tmp_path).cluster(CLUSTER)).events
    assert [event.text for event in events if event.kind == "broker"] == []


def test_the_epoch_that_the_window_begins_in_is_not_an_event(tmp_path: Path) -> None:
    events = facts_of(cluster_tables(tmp_path, healthy_cluster().records)).events
    assert [event.text for event in events if event.kind == "quorum"] == []


def test_an_epoch_whose_begin_is_not_in_the_log_is_not_an_election(tmp_path: Path) -> None:
    rows = [
        row._replace(leader=None) if isinstance(row, QuorumEpochRow) else row
        for row in rows_of(small_cluster().records)
    ]
    write_rows(tmp_path, rows)
    quorum = facts_of(TablesDirectory(tmp_path).cluster(CLUSTER)).quorum
    assert (quorum.epoch_count, quorum.election_count) == (1, 0)


def test_rules_for_prefixes_differ_from_those_for_names(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.later(MINUTE_MS)
    for number, pattern in enumerate((PatternType.LITERAL, PatternType.PREFIXED)):
        cluster.write(
            AccessControlEntryRecord(
                id=bytes([number]) * 16,
                resource_type=AclResourceType.TOPIC,
                resource_name="a",
                pattern_type=pattern,
                principal="User:ann",
                host="10.0.0.1",
                operation=AclOperation.READ,
                permission_type=PermissionType.DENY,
            )
        )
    histories = facts_of(cluster_tables(tmp_path, cluster.records)).values
    (rules,) = [each for each in histories if each.kind == "ACL"]
    assert [(each.subject, each.change) for each in rules.changes] == [
        ("topic a*", "added: DENY READ for User:ann from 10.0.0.1"),
        ("topic a", "added: DENY READ for User:ann from 10.0.0.1"),
    ]


def test_partitions_below_their_minimal_isr_alone_are_critical(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.configure("a", "min.insync.replicas", "2", ResourceType.TOPIC)
    cluster.later(MINUTE_MS)
    cluster.lag(2, 1)
    facts = facts_of(cluster_tables(tmp_path, cluster.records))
    counts = [facts.open_count(each) for each in Condition]
    assert (counts, facts.trouble) == ([0, 1, 1], Trouble.CRITICAL)


def test_of_equal_clusters_the_one_with_more_brokers_out_of_service_comes_first(
    tmp_path: Path,
) -> None:
    for name, count in (("one", 1), ("two", 2)):
        cluster = MadeUpCluster(3)
        for broker in range(1, count + 1):
            cluster.fence(broker)
        write_log(tmp_path / "tables", cluster.records, name)
    assert clusters_in(written_index(tmp_path)) == ["two", "one"]
