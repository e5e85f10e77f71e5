"""Facts where two things are close to each other: in time, in kind, or in order."""

from pathlib import Path

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

from kvorum.metadata.acl_codes import AclOperation, AclResourceType, PatternType, PermissionType
from kvorum.metadata.configs_image import ResourceType
from kvorum.spark.history.tables import BrokerStateRow, Condition, QuorumEpochRow
from kvorum.spark.report.log_files import Trouble
from kvorum.spark.report.tables_directory import TablesDirectory
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.k_raft_version_record import KRaftVersionRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.voters_record import VotersRecord


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
    topic_id = cluster.topics["a"][0].topic_id
    cluster.write(
        PartitionChangeRecord(
            0,
            topic_id,
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
