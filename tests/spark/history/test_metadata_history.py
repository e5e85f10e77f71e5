"""Rows of small logs: transactions, snapshots, changed values, the quorum, and wrong input."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.history.random_logs import log_of, random_log, rows_of
from tests.support.golden_data import METADATA_NODES
from tests.support.spark.small_logs import (
    directory_records,
    file_records,
    snapshot_files,
    written_records,
)

from kvorum.history import LogRecord, MetadataHistory, StateRow
from kvorum.history.columns import VoterColumn
from kvorum.history.errors import ContradictionError, MissingOffsetsError
from kvorum.history.metadata_history import RECORDS_PER_IMAGE
from kvorum.history.tables import (
    AclChangeRow,
    AvailabilityRow,
    ConfigChangeRow,
    ConfigRow,
    ControllerRegistrationRow,
    DelegationTokenChangeRow,
    FeatureChangeRow,
    LeaderChangeRow,
    PartitionRow,
    PartitionTimelineRow,
    ProducerIdsRow,
    QuorumEpochRow,
    QuorumVotersRow,
    QuotaChangeRow,
    ScramChangeRow,
    TopicRow,
)
from kvorum.wire.messages.abort_transaction_record import AbortTransactionRecord
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.begin_transaction_record import BeginTransactionRecord
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.delegation_token_record import DelegationTokenRecord
from kvorum.wire.messages.end_transaction_record import EndTransactionRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.k_raft_version_record import KRaftVersionRecord
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.producer_ids_record import ProducerIdsRecord
from kvorum.wire.messages.register_controller_record import RegisterControllerRecord
from kvorum.wire.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kvorum.wire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord
from kvorum.wire.messages.voters_record import VotersRecord
from kvorum.wire.primitives import Message

TOPIC = bytes(15) + b"\x07"

NEW_TOPIC: list[Message] = [
    TopicRecord("orders", TOPIC),
    PartitionRecord(0, TOPIC, replicas=[1, 2, 3], isr=[1, 2, 3], leader=1, partition_epoch=0),
]


def isr_change(*isr: int) -> PartitionChangeRecord:
    return PartitionChangeRecord(0, TOPIC, isr=list(isr))


def test_a_transaction_takes_effect_where_it_ends_and_as_a_whole() -> None:
    rows = rows_of(
        PartitionTimelineRow,
        *NEW_TOPIC,
        BeginTransactionRecord(name="t"),
        isr_change(1, 2),
        isr_change(1),
        NoOpRecord(),
        EndTransactionRecord(),
    )
    assert [(row.from_offset, row.to_offset, row.isr, row.partition_epoch) for row in rows] == [
        (2, 7, (1, 2, 3), 0),
        (7, None, (1,), 2),
    ]
    assert [(row.from_time, row.to_time) for row in rows] == [(2000, 7000), (7000, None)]


def test_an_aborted_transaction_has_no_effect() -> None:
    begin, abort = BeginTransactionRecord(name="t"), AbortTransactionRecord(reason=None)
    config = ConfigRecord(2, "orders", "min.insync.replicas", "3")
    messages = [*NEW_TOPIC, begin, isr_change(1), config, RemoveTopicRecord(TOPIC), abort]
    assert [row.to_offset for row in rows_of(PartitionTimelineRow, *messages)] == [None]
    assert rows_of(ConfigChangeRow, *messages) == []
    assert rows_of(AvailabilityRow, *messages) == []


def test_a_value_that_a_transaction_changes_twice_changes_once() -> None:
    first, second, third = (ConfigRecord(4, "", "log.cleaner.threads", each) for each in "123")
    begin, end = BeginTransactionRecord(name="t"), EndTransactionRecord()
    rows = rows_of(ConfigChangeRow, first, begin, second, third, end)
    assert [(row.offset, row.old_value, row.new_value) for row in rows] == [
        (1, None, "1"),
        (5, "1", "3"),
    ]


def test_an_open_transaction_is_not_seen() -> None:
    history = MetadataHistory()
    messages = [BeginTransactionRecord(name="t"), *NEW_TOPIC]
    assert list(history.add_all(log_of(*messages))) == []
    assert [row for row in history.open_rows() if not isinstance(row, QuorumEpochRow)] == []
    assert list(history.end_state()) == []
    *_, end = log_of(*messages, EndTransactionRecord())
    assert [type(row) for row in history.add(end)] == [LeaderChangeRow]
    assert [row.partition_id for row in history.end_state() if isinstance(row, PartitionRow)] == [0]


def test_a_topic_that_one_transaction_creates_and_removes_was_never_there() -> None:
    begin, end = BeginTransactionRecord(name="t"), EndTransactionRecord()
    messages = [begin, *NEW_TOPIC, isr_change(1), RemoveTopicRecord(TOPIC), end]
    assert rows_of(PartitionTimelineRow, *messages) == []
    assert rows_of(LeaderChangeRow, *messages) == []


@pytest.mark.parametrize(("eligible", "is_unclean"), [([1], False), ([], True)])
def test_a_leader_that_was_eligible_has_all_records(eligible: list[int], is_unclean: bool) -> None:
    """A reassignment is cancelled whose new replica alone is in sync: the old one leads again."""
    reassigned = PartitionRecord(
        0, TOPIC, replicas=[1, 4], isr=[4], leader=4, adding_replicas=[4], partition_epoch=0,
        eligible_leader_replicas=eligible,
    )  # fmt: skip
    cancelled = PartitionChangeRecord(0, TOPIC, leader=1, isr=[1], replicas=[1], adding_replicas=[])
    rows = rows_of(LeaderChangeRow, TopicRecord("orders", TOPIC), reassigned, cancelled)
    assert [row.is_unclean for row in rows] == [False, is_unclean]


def test_the_minimal_isr_follows_the_configuration() -> None:
    def minimum(kind: int, name: str, value: str | None) -> ConfigRecord:
        return ConfigRecord(kind, name, "min.insync.replicas", value)

    rows = rows_of(
        AvailabilityRow,
        *NEW_TOPIC,
        isr_change(1, 2),  # 3: under-replicated from here on
        minimum(4, "", "3"),  # 4: the cluster's default
        minimum(2, "orders", "2"),  # 5: the topic's own value comes first
        isr_change(1),  # 6
        minimum(2, "orders", "1"),  # 7
        minimum(2, "orders", None),  # 8: the cluster's default again
        RemoveTopicRecord(TOPIC),  # 9
    )
    assert [(row.condition, row.from_offset, row.to_offset, row.end_reason) for row in rows] == [
        ("under_min_isr", 4, 5, "changed"),
        ("under_min_isr", 6, 7, "changed"),
        ("under_replicated", 3, 9, "topic_deleted"),
        ("under_min_isr", 8, 9, "topic_deleted"),
    ]
    assert [row.duration_ms for row in rows] == [1000, 1000, 6000, 1000]


def test_the_minimal_isr_is_limited_to_the_number_of_replicas() -> None:
    minimum = ConfigRecord(2, "orders", "min.insync.replicas", "5")
    assert rows_of(AvailabilityRow, *NEW_TOPIC, minimum) == []


def test_replicas_that_are_being_added_are_not_missing() -> None:
    change = PartitionChangeRecord(0, TOPIC, replicas=[1, 2, 3, 4], adding_replicas=[4])
    assert rows_of(AvailabilityRow, *NEW_TOPIC, change) == []


def test_a_condition_that_is_still_there_lasts_until_the_last_record() -> None:
    offline = PartitionChangeRecord(0, TOPIC, leader=-1)
    (row,) = rows_of(AvailabilityRow, *NEW_TOPIC, offline, NoOpRecord(), NoOpRecord())
    assert (row.condition, row.to_offset, row.to_time) == ("offline", None, None)
    assert (row.duration_ms, row.end_reason) == (2000, "log_end")


def test_configurations_with_old_and_new_values() -> None:
    def config(kind: int, name: str, key: str, value: str | None) -> ConfigRecord:
        return ConfigRecord(kind, name, key, value)

    rows = rows_of(
        ConfigChangeRow,
        *NEW_TOPIC,
        config(2, "orders", "retention.ms", "1"),
        config(2, "orders", "retention.ms", "1"),  # changes nothing
        config(2, "orders", "retention.ms", "2"),
        config(2, "orders", "no.such.key", "2"),  # skipped by every node
        config(4, "1", "ssl.key.password", "secret"),
        config(4, "1", "an.unknown.key", "x"),
        config(4, "1", "an.unknown.key", None),
        RemoveTopicRecord(TOPIC),
    )
    assert [
        (row.offset, row.action, row.resource_type, row.name, row.old_value, row.new_value)
        for row in rows
    ] == [
        (3, "added", "TOPIC", "retention.ms", None, "1"),
        (5, "changed", "TOPIC", "retention.ms", "1", "2"),
        (7, "added", "BROKER", "ssl.key.password", None, "secret"),
        (8, "added", "BROKER", "an.unknown.key", None, "x"),
        (9, "removed", "BROKER", "an.unknown.key", "x", None),
        (10, "removed", "TOPIC", "retention.ms", "2", None),
    ]
    assert [row.is_sensitive for row in rows] == [False, False, True, None, None, False]
    assert [row.is_topic_deleted for row in rows] == [False] * 5 + [True]


def test_access_control_entries() -> None:
    rows = rows_of(
        AclChangeRow,
        AccessControlEntryRecord(TOPIC, 2, "orders", 4, "User:ann", "*", 3, 3),
        RemoveAccessControlEntryRecord(id=TOPIC),
    )
    assert [row.action for row in rows] == ["added", "removed"]
    assert {row[4:] for row in rows} == {
        ("AAAAAAAAAAAAAAAAAAAABw", "TOPIC", "orders", "PREFIXED", "User:ann", "*", "READ", "ALLOW")
    }


def test_quotas() -> None:
    def quota(value: float, *, remove: bool = False) -> ClientQuotaRecord:
        entity = [
            ClientQuotaRecord.EntityData("user", None),
            ClientQuotaRecord.EntityData("client-id", "c"),
        ]
        return ClientQuotaRecord(entity, "request_percentage", value, remove)

    rows = rows_of(QuotaChangeRow, quota(5.5), quota(6.5), quota(0.0, remove=True))
    assert [(row.action, row.old_value, row.new_value) for row in rows] == [
        ("added", None, 5.5),
        ("changed", 5.5, 6.5),
        ("removed", 6.5, None),
    ]
    assert rows[0].entity == (("client-id", "c"), ("user", None))


def test_scram_credentials_without_their_secrets() -> None:
    rows = rows_of(
        ScramChangeRow,
        UserScramCredentialRecord("ann", 1, b"salt", b"stored", b"server", 4096),
        UserScramCredentialRecord("ann", 1, b"tlas", b"stored", b"server", 4096),
        UserScramCredentialRecord("ann", 2, b"salt", b"stored", b"server", 8192),
        RemoveUserScramCredentialRecord(name="ann", mechanism=1),
    )
    assert [(row.action, row.user, row.mechanism, row.iterations) for row in rows] == [
        ("added", "ann", "SCRAM-SHA-256", 4096),
        ("changed", "ann", "SCRAM-SHA-256", 4096),
        ("added", "ann", "SCRAM-SHA-512", 8192),
        ("removed", "ann", "SCRAM-SHA-256", 4096),
    ]
    assert not [secret for secret in ("salt", "stored", "server") if secret in repr(rows)]


def test_features_tokens_and_producer_ids() -> None:
    def token(expiration: int) -> DelegationTokenRecord:
        return DelegationTokenRecord("User:o", "User:r", ["User:p"], 1, 9, expiration, "t")

    messages: list[Message] = [
        FeatureLevelRecord("metadata.version", 28),
        FeatureLevelRecord("metadata.version", 30),
        FeatureLevelRecord("group.version", 1),
        FeatureLevelRecord("group.version", 0),
        token(5),
        token(6),
        RemoveDelegationTokenRecord(token_id="t"),
        ProducerIdsRecord(1, 7, 1000),
        ProducerIdsRecord(2, 8, 2000),
    ]
    assert [row[3:] for row in rows_of(FeatureChangeRow, *messages)] == [
        ("metadata.version", 0, 28),
        ("metadata.version", 28, 30),
        ("group.version", 0, 1),
        ("group.version", 1, 0),
    ]
    tokens = rows_of(DelegationTokenChangeRow, *messages)
    assert [(row.action, row.token_id, row.expiration_time) for row in tokens] == [
        ("added", "t", 5),
        ("changed", "t", 6),
        ("removed", "t", 6),
    ]
    assert [row[3:] for row in rows_of(ProducerIdsRow, *messages)] == [
        (1, 7, None, 1000),
        (2, 8, 1000, 2000),
    ]


def test_controllers() -> None:
    def controller(number: int) -> RegisterControllerRecord:
        return RegisterControllerRecord(controller_id=1, incarnation_id=bytes([number]) * 16)

    rows = rows_of(ControllerRegistrationRow, controller(1), controller(1), controller(2))
    assert [(row.from_offset, row.to_offset, row.end_reason) for row in rows] == [
        (1, 3, "superseded"),
        (3, None, "log_end"),
    ]


def test_epochs_and_voters() -> None:
    voters = [LeaderChangeMessage.Voter(each) for each in (1, 2, 3)]
    change = LeaderChangeMessage(leader_id=2, voters=voters, granting_voters=voters[1:])
    record = VotersRecord(
        voters=[VotersRecord.Voter(2, TOPIC, [VotersRecord.Endpoint("CONTROLLER", "h", 9)])]
    )
    records = [
        *written_records([(NoOpRecord(), 0)]),
        LogRecord(2, 5, 2000, change, 0),
        LogRecord(3, 5, 2000, KRaftVersionRecord(k_raft_version=1), 0),
        LogRecord(4, 5, 2000, record, 0),
        # Without a record of its own, an epoch has no known leader.
        LogRecord(5, 6, 5000, NoOpRecord(), 0),
    ]
    history = MetadataHistory()
    rows = [*history.add_all(records), *history.open_rows()]
    epochs = [row for row in rows if isinstance(row, QuorumEpochRow)]
    assert [(row.epoch, row.leader, row.from_offset, row.to_offset) for row in epochs] == [
        (1, 1, 0, 2),
        (5, 2, 2, 5),
        (6, None, 5, None),
    ]
    assert (epochs[1].voters, epochs[1].granting_voters) == ((1, 2, 3), (2, 3))
    assert [
        (row.kraft_version, [voter.voter_id for voter in row.voters], row.from_offset)
        for row in rows
        if isinstance(row, QuorumVotersRow)
    ] == [(1, [], 3), (1, [2], 4)]
    (voter,) = [row for row in history.end_state() if isinstance(row, VoterColumn)]
    assert (voter.voter_id, voter.endpoints) == (2, (("CONTROLLER", "h", 9),))


def test_a_history_from_a_snapshot_ends_as_the_one_of_the_whole_log(golden_sets: Path) -> None:
    directory = golden_sets / METADATA_NODES[1] / "__cluster_metadata-0"
    records = directory_records(directory)
    whole = MetadataHistory()
    rows_of_whole = list(whole.add_all(records))
    compared = 0
    for end, epoch, file in snapshot_files(directory):
        if end == 0:
            continue
        history = MetadataHistory.from_snapshot(file_records(file), end_offset=end, epoch=epoch)
        assert history.next_offset == end
        fields = [row._asdict() for row in history.open_rows()]
        assert {each["from_offset"] for each in fields} == {end - 1}
        assert {each["from_time"] for each in fields} == {records[end - 1].timestamp_ms}
        assert {each["begins_earlier"] for each in fields} == {True}
        # Records before the snapshot are skipped.
        rows = list(history.add_all(records))
        assert state(history) == state(whole)
        later = [
            row
            for row in rows_of_whole
            if isinstance(row, LeaderChangeRow | ConfigChangeRow | ScramChangeRow)
            and row.offset >= end
        ]
        assert later == [
            row
            for row in rows
            if isinstance(row, LeaderChangeRow | ConfigChangeRow | ScramChangeRow)
        ]
        compared += 1
    assert compared >= 3


def state(history: MetadataHistory) -> set[StateRow]:
    """The state at the end, without a leftover in Kafka's snapshots.

    Kafka keeps the configuration of a topic that was made, configured and removed again between
    two images; the log itself says that it is gone.
    """
    rows = set(history.end_state())
    topics = {row.topic_name for row in rows if isinstance(row, TopicRow)}
    return {
        row
        for row in rows
        if not isinstance(row, ConfigRow)
        or row.resource_type != "TOPIC"
        or row.resource_name in topics
    }


def test_records_are_folded_only_when_rows_are_asked_for() -> None:
    taken: list[int] = []

    def records() -> Iterator[LogRecord]:
        for record in log_of(*NEW_TOPIC, isr_change(1), isr_change(1, 2), isr_change(1, 2, 3)):
            taken.append(record.offset)
            yield record

    rows = MetadataHistory().add_all(records())
    assert taken == []
    next(row for row in rows if isinstance(row, PartitionTimelineRow))
    assert taken == [0, 1, 2, 3]


def test_a_long_log_is_folded_like_a_short_one() -> None:
    changes = [isr_change(1, *([2] * (number % 2))) for number in range(2 * RECORDS_PER_IMAGE)]
    rows = rows_of(PartitionTimelineRow, *NEW_TOPIC, *changes)
    assert [row.partition_epoch for row in rows] == list(range(len(changes) + 1))


def test_missing_records_are_reported() -> None:
    records = log_of(*NEW_TOPIC)
    history = MetadataHistory()
    with pytest.raises(MissingOffsetsError, match="must be at offset 0, but the one at 1 came"):
        list(history.add(records[1]))
    list(history.add(records[0]))
    with pytest.raises(MissingOffsetsError, match="must be at offset 1"):
        list(history.add(records[2]))


def test_records_that_were_added_before_are_skipped() -> None:
    records = log_of(*NEW_TOPIC, isr_change(1))
    history = MetadataHistory()
    list(history.add_all(records))
    assert list(history.add_all(records)) == []


def test_a_record_that_contradicts_the_others_is_named() -> None:
    with pytest.raises(ContradictionError, match="offset 1 cannot be applied: no topic with id"):
        list(MetadataHistory().add_all(log_of(isr_change(1))))


@pytest.mark.parametrize(
    "error", [MissingOffsetsError(expected=1, found=3), ContradictionError(offset=5, reason="why")]
)
def test_errors_pass_between_processes(error: Exception) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_rows_pass_between_processes() -> None:
    history = MetadataHistory()
    rows = [*history.add_all(random_log(seed=3)), *history.open_rows(), *history.end_state()]
    assert pickle.loads(pickle.dumps(rows)) == rows
