"""Rows of what happens more than once, or together with something else."""

from tests.spark.history.random_logs import rows_of
from tests.support.spark.small_logs import written_records

from kvorum.history import MetadataHistory
from kvorum.history.tables import (
    AvailabilityRow,
    BrokerSessionRow,
    BrokerStateRow,
    ConfigChangeRow,
    LeaderChangeRow,
    PartitionTimelineRow,
    QuorumVotersRow,
)
from kvorum.wire.messages.begin_transaction_record import BeginTransactionRecord
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.clear_elr_record import ClearElrRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.end_transaction_record import EndTransactionRecord
from kvorum.wire.messages.k_raft_version_record import KRaftVersionRecord
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.messages.voters_record import VotersRecord
from kvorum.wire.primitives import Message

TOPIC, OTHER_TOPIC = bytes(15) + b"\x07", bytes(15) + b"\x08"
TOPIC_CONFIG = 2
FENCE, UNFENCE = 1, -1
BEGIN, END = BeginTransactionRecord(name="t"), EndTransactionRecord()


def new_topic(name: str = "orders", topic_id: bytes = TOPIC, *elr: int) -> list[Message]:
    isr = [each for each in (1, 2, 3) if each not in elr]
    return [
        TopicRecord(name, topic_id),
        PartitionRecord(
            0, topic_id, replicas=[1, 2, 3], isr=isr, leader=1, partition_epoch=0,
            eligible_leader_replicas=list(elr),
        ),
    ]  # fmt: skip


def min_isr(value: str | None) -> ConfigRecord:
    return ConfigRecord(TOPIC_CONFIG, "orders", "min.insync.replicas", value)


def test_a_session_has_the_first_service_the_last_fence_and_the_first_shutdown() -> None:
    def change(fenced: int = 0, shutdown: int = 0) -> BrokerRegistrationChangeRecord:
        return BrokerRegistrationChangeRecord(1, 9, fenced, shutdown)

    messages: list[Message] = [
        RegisterBrokerRecord(broker_id=1, incarnation_id=TOPIC, broker_epoch=9),
        change(UNFENCE),  # 2
        change(FENCE),  # 3
        change(UNFENCE),  # 4
        change(shutdown=1),  # 5
        change(FENCE),  # 6
        change(UNFENCE),  # 7: in controlled shutdown again
    ]
    (session,) = rows_of(BrokerSessionRow, *messages)
    assert (session.first_unfenced_offset, session.first_unfenced_time) == (2, 2000)
    assert (session.last_fenced_offset, session.last_fenced_time) == (6, 6000)
    assert (session.controlled_shutdown_offset, session.controlled_shutdown_time) == (5, 5000)
    assert session.fenced_count == 2
    states = rows_of(BrokerStateRow, *messages)
    assert [(row.state, row.from_offset, row.to_offset) for row in states] == [
        ("fenced", 1, 2),
        ("unfenced", 2, 3),
        ("fenced", 3, 4),
        ("unfenced", 4, 5),
        ("controlled_shutdown", 5, 6),
        ("fenced", 6, 7),
        ("controlled_shutdown", 7, None),
    ]


def test_a_condition_that_comes_and_goes_within_a_transaction_was_never_there() -> None:
    shrunk = PartitionChangeRecord(0, TOPIC, isr=[1])
    messages = [*new_topic(), min_isr("2"), BEGIN, shrunk, min_isr("1"), END]
    rows = rows_of(AvailabilityRow, *messages)
    assert [(row.condition, row.from_offset, row.to_offset) for row in rows] == [
        ("under_replicated", 7, None)
    ]


def test_a_topic_keeps_its_name_where_the_one_before_goes_in_the_same_transaction() -> None:
    within = [RemoveTopicRecord(TOPIC), *new_topic("orders", OTHER_TOPIC)]
    shrunk = PartitionChangeRecord(0, OTHER_TOPIC, isr=[1, 2])
    # The change of the partition is at 8, that of the configuration at 9.
    rows = rows_of(AvailabilityRow, *new_topic(), BEGIN, *within, END, shrunk, min_isr("3"))
    assert [(row.condition, row.from_offset) for row in rows] == [
        ("under_replicated", 8),
        ("under_min_isr", 9),
    ]


def test_a_broker_that_was_unfenced_earlier_is_not_a_cause() -> None:
    lost = PartitionChangeRecord(0, TOPIC, leader=-1)
    unfenced = BrokerRegistrationChangeRecord(1, 9, UNFENCE)
    found = PartitionChangeRecord(0, TOPIC, leader=1)
    before: list[Message] = [
        RegisterBrokerRecord(broker_id=1, incarnation_id=TOPIC, broker_epoch=9),
        *new_topic(),
        lost,
        unfenced,
    ]
    directly = rows_of(LeaderChangeRow, *before, found)
    assert [row.cause for row in directly if row.new_leader == 1][-1] == "broker_unfenced"
    later = rows_of(LeaderChangeRow, *before, NoOpRecord(), found)
    assert [row.cause for row in later if row.new_leader == 1][-1] == "unknown"


def test_values_that_change_and_go_with_their_topic_in_a_transaction_go_once() -> None:
    first, second = (
        ConfigRecord(TOPIC_CONFIG, "orders", "retention.ms", each) for each in ("1", "2")
    )
    messages = [*new_topic(), first, BEGIN, second, RemoveTopicRecord(TOPIC), END]
    rows = rows_of(ConfigChangeRow, *messages)
    assert [(row.action, row.old_value, row.new_value) for row in rows] == [
        ("added", None, "1"),
        ("removed", "1", None),
    ]


def test_eligible_replicas_of_all_topics_are_cleared_at_once() -> None:
    messages = [*new_topic("a", TOPIC, 3), *new_topic("b", OTHER_TOPIC, 3), ClearElrRecord()]
    rows = rows_of(PartitionTimelineRow, *messages)
    found = [(row.topic_name, row.eligible_leader_replicas, row.to_offset) for row in rows]
    assert sorted(found) == [("a", (), None), ("a", (3,), 5), ("b", (), None), ("b", (3,), 5)]
    of_one = rows_of(PartitionTimelineRow, *messages[:-1], ClearElrRecord("a"))
    found = [(row.topic_name, row.eligible_leader_replicas, row.to_offset) for row in of_one]
    assert sorted(found) == [("a", (), None), ("a", (3,), 5), ("b", (3,), None)]


def test_the_kraft_version_holds_through_changes_of_voters() -> None:
    def voters(*ids: int) -> VotersRecord:
        return VotersRecord(voters=[VotersRecord.Voter(each, TOPIC) for each in ids])

    version = KRaftVersionRecord(k_raft_version=1)
    records = written_records([(NoOpRecord(), 0)])
    history = MetadataHistory()
    last = records[-1]
    for message in (version, voters(3, 1), voters(2, 3, 1)):
        records.append(last._replace(offset=records[-1].offset + 1, message=message, version=0))
    rows = [*history.add_all(records), *history.open_rows()]
    assert [
        (row.kraft_version, [voter.voter_id for voter in row.voters], row.from_offset)
        for row in rows
        if isinstance(row, QuorumVotersRow)
    ] == [(1, [], 2), (1, [1, 3], 3), (1, [1, 2, 3], 4)]


def test_a_topic_goes_with_its_minimal_isr() -> None:
    messages = [*new_topic(), min_isr("2"), RemoveTopicRecord(TOPIC), *new_topic()]
    assert rows_of(AvailabilityRow, *messages, PartitionChangeRecord(0, TOPIC, isr=[1])) == [
        AvailabilityRow(
            "orders", "AAAAAAAAAAAAAAAAAAAABw", 0, "under_replicated",
            from_offset=7, from_time=7000, begins_earlier=False, to_offset=None, to_time=None,
            duration_ms=0, end_reason="log_end",
        )
    ]  # fmt: skip
