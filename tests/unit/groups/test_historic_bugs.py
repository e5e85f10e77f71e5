"""Bugs that Kafka's group coordinators once had, each with the case that shows it."""

import pytest
from tests.unit.groups.coordinator import (
    DELAY_MS,
    GROUP,
    JOIN_MS,
    PRODUCER,
    REBALANCE_MS,
    RETENTION_MS,
    SESSION_MS,
    SWEEP_MS,
    TOPIC,
    Coordinator,
)
from tests.unit.groups.mixed_group import MixedGroup, assignment, owned_by

from kvorum.coordinator.record import CoordinatorRecord, DamagedRecordError
from kvorum.groups.classic_group.group import ClassicGroupState
from kvorum.groups.records import (
    OFFSET_COMMIT_VALUE_VERSION,
    OtherGroupRecord,
    decode_other_group_record,
    decode_record,
)
from kvorum.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kvorum.wire.messages.offset_commit_key import OffsetCommitKey
from kvorum.wire.messages.offset_commit_value import OffsetCommitValue

_PREPARING = ClassicGroupState.PREPARING_REBALANCE


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


def test_a_failed_static_rejoin_leaves_the_old_member_as_it_was(coordinator: Coordinator) -> None:
    """KAFKA-18263."""
    leader, _ = coordinator.stable_group("one", "two")
    coordinator.advance(SESSION_MS // 2)
    failed = coordinator.join(
        instance="one", rebalance_ms=60_000, error=ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    assert coordinator.join_error(failed) is ErrorCode.NOT_COORDINATOR
    assert coordinator.timers[f"heartbeat-{GROUP}-{leader}"][0] == coordinator.now + SESSION_MS
    member = coordinator.group.members.get(leader)
    assert member is not None
    assert coordinator.group.leader_id == leader
    assert member.rebalance_timeout_ms == REBALANCE_MS
    assert member.assignment == f"for {leader}".encode()
    assert coordinator.heartbeat(leader, "one") is ErrorCode.NONE


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_FETCH_SIZE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_RECORD, ErrorCode.INVALID_RECORD),
    ],
)
def test_errors_of_the_log_become_errors_of_a_coordinator(
    coordinator: Coordinator, error: ErrorCode, answer: ErrorCode
) -> None:
    """KAFKA-15647."""
    joined = coordinator.join(version=3)
    coordinator.advance(JOIN_MS)
    promise = coordinator.sync(coordinator.join_response(joined).member_id, error=error)
    assert coordinator.sync_response(promise).error_code == answer
    assert coordinator.group.is_in(_PREPARING)


def test_a_static_member_brings_its_new_rebalance_timeout(coordinator: Coordinator) -> None:
    """KAFKA-14009."""
    coordinator.stable_group("one", "two")
    coordinator.join(instance="two", rebalance_ms=90_000)
    coordinator.join(version=3)
    assert coordinator.timers[f"join-{GROUP}"][0] == coordinator.now + 90_000


def test_an_instance_without_a_generation_may_commit_for_an_empty_group() -> None:
    """KAFKA-14201."""
    coordinator = Coordinator()
    assert coordinator.commit(3) is ErrorCode.NONE
    assert coordinator.commit(4, instance="one") is ErrorCode.NONE


@pytest.mark.parametrize(("version", "skips"), [(8, False), (9, True)])
def test_a_static_leader_that_comes_back_does_not_assign_again(version: int, skips: bool) -> None:
    """KAFKA-13435."""
    coordinator = Coordinator()
    old, _ = coordinator.stable_group("one", "two")
    answer = coordinator.join_response(coordinator.join(instance="one", version=version))
    assert answer.skip_assignment is skips
    assert answer.leader == (answer.member_id if skips else old)
    assert len(answer.members) == (2 if skips else 0)
    assert coordinator.group.is_in(ClassicGroupState.STABLE)


def test_a_member_that_never_syncs_is_removed(coordinator: Coordinator) -> None:
    """KAFKA-12890."""
    promises = [coordinator.join(version=3) for _ in range(2)]
    coordinator.advance(JOIN_MS)
    ids = [coordinator.join_response(one).member_id for one in promises]
    coordinator.sync(ids[0], {})
    for _ in range(REBALANCE_MS // SESSION_MS * 2):
        coordinator.advance(SESSION_MS // 2)
        for one in ids:
            coordinator.heartbeat(one)
    assert ids[1] not in coordinator.group.members
    assert coordinator.group.is_in(_PREPARING)


def test_the_new_id_of_a_static_member_outlives_the_coordinator(coordinator: Coordinator) -> None:
    """KAFKA-10284."""
    coordinator.stable_group("one", "two")
    answer = coordinator.join_response(coordinator.join(instance="two"))
    coordinator.reload()
    assert coordinator.heartbeat(answer.member_id, "two") is ErrorCode.NONE


def test_offsets_of_a_group_that_became_empty_expire_from_then_on() -> None:
    """KAFKA-10401: by its commit it would go with the first sweep, it goes with the second."""
    coordinator = Coordinator(offsets_retention_ms=SWEEP_MS + RETENTION_MS)
    (member,) = coordinator.stable_group(None)
    coordinator.commit(3, member_id=member, generation=1)
    while coordinator.now < 2 * RETENTION_MS:
        coordinator.advance(SESSION_MS - 1)
        coordinator.heartbeat(member)
    coordinator.leave(member)
    assert coordinator.group.is_empty
    coordinator.reload()
    coordinator.advance(SWEEP_MS)
    assert coordinator.fetch().committed_offset == 3
    coordinator.advance(SWEEP_MS)
    assert coordinator.fetch().committed_offset == -1
    assert coordinator.shard.state.groups.get(GROUP) is None


def test_no_more_members_join_than_the_group_may_have() -> None:
    """KAFKA-9844."""
    coordinator = Coordinator(group_max_size=2)
    promises = [coordinator.join(version=3) for _ in range(10)]
    coordinator.advance(JOIN_MS)
    errors = [coordinator.join_error(one) for one in promises]
    assert errors.count(ErrorCode.NONE) == 2
    assert errors.count(ErrorCode.GROUP_MAX_SIZE_REACHED) == 8


def test_a_new_member_does_not_wait_in_a_join_for_ever(coordinator: Coordinator) -> None:
    """KAFKA-9752."""
    (member,) = coordinator.stable_group("one")
    waiting = coordinator.join(version=3, rebalance_ms=10 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    for _ in range(NEW_MEMBER_JOIN_TIMEOUT_MS // SESSION_MS * 2):
        coordinator.advance(SESSION_MS // 2)
        coordinator.heartbeat(member, "one")
    assert coordinator.join_error(waiting) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_is_there_twice_is_fenced_while_it_waits() -> None:
    """KAFKA-8500."""
    coordinator = Coordinator()
    first = coordinator.join(instance="one")
    second = coordinator.join(instance="one")
    assert coordinator.join_error(first) is ErrorCode.FENCED_INSTANCE_ID
    coordinator.join(instance="two")
    coordinator.advance(JOIN_MS)
    assert coordinator.join_error(second) is ErrorCode.NONE
    waiting = coordinator.sync(coordinator.group.static_members["two"])
    coordinator.join(instance="two")
    assert coordinator.sync_response(waiting).error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_sleeps_through_a_join_phase(coordinator: Coordinator) -> None:
    """KAFKA-8220."""
    leader, sleeper = coordinator.stable_group("one", "two")
    joined = coordinator.join(leader, instance="one")
    for _ in range(REBALANCE_MS // SESSION_MS * 2):
        coordinator.advance(SESSION_MS // 2)
        if coordinator.joined(joined) is None:
            coordinator.heartbeat(sleeper, "two")
    assert sleeper in [one.member_id for one in coordinator.join_response(joined).members]


def test_a_member_that_was_only_expected_does_not_hold_the_join_phase_up() -> None:
    """KAFKA-7909: it is dropped by its session, and joins at once when it comes back."""
    coordinator = Coordinator()
    (member,) = coordinator.stable_group(None)
    required = coordinator.join_response(coordinator.join())
    assert required.error_code == ErrorCode.MEMBER_ID_REQUIRED
    again = coordinator.join(member)
    assert coordinator.joined(again) is None
    coordinator.advance(SESSION_MS)
    assert coordinator.join_error(again) is ErrorCode.NONE
    required = coordinator.join_response(coordinator.join())
    again = coordinator.join(member)
    coordinator.join(required.member_id)
    assert coordinator.join_error(again) is ErrorCode.NONE


def test_a_group_that_was_deleted_may_come_back_as_a_simple_one(coordinator: Coordinator) -> None:
    """KAFKA-4704."""
    coordinator.join()
    coordinator.append(coordinator.shard.delete_groups([GROUP]))
    coordinator.commit(3)
    coordinator.reload()
    assert coordinator.fetch().committed_offset == 3


@pytest.mark.parametrize(("key", "value"), [(b"\0\2\0\1g", b"\0\x63" + bytes(40)), (b"\0", None)])
def test_a_value_of_a_later_version_is_refused(key: bytes, value: bytes | None) -> None:
    """KAFKA-18672."""
    with pytest.raises(DamagedRecordError):
        decode_record(key, value)


def test_records_of_an_unknown_type_are_skipped() -> None:
    """KAFKA-14869."""
    assert decode_record(b"\0\x63", b"\0\0") is None
    assert decode_other_group_record(b"\0\x63", b"\0\0") is None


def test_a_streams_group_is_known_until_its_last_tombstone() -> None:
    key, member_key = b"\0\21\0\1g", b"\0\23\0\1g\0\1m"
    assert decode_other_group_record(key, b"\0\0") == OtherGroupRecord("g", ends_group=False)
    assert decode_other_group_record(member_key, b"\0\0") == OtherGroupRecord("g", ends_group=False)
    assert decode_other_group_record(member_key, None) is None
    assert decode_other_group_record(key, None) == OtherGroupRecord("g", ends_group=True)
    assert decode_record(key, b"\0\0") is None
    with pytest.raises(DamagedRecordError):
        decode_other_group_record(b"\0\21", b"\0\0")


def test_a_group_with_only_offsets_of_a_transaction_survives_the_sweep() -> None:
    """KAFKA-19163."""
    coordinator = Coordinator()
    coordinator.commit_in_transaction("")
    coordinator.advance(SWEEP_MS)
    coordinator.shard.replay_end_transaction_marker(PRODUCER, is_commit=True)
    coordinator.shard.timeline.written_offset = len(coordinator.log) + 1
    coordinator.shard.timeline.commit(len(coordinator.log) + 1)
    assert coordinator.fetch().committed_offset == 5


def test_the_offset_of_a_topic_is_not_that_of_its_successor(coordinator: Coordinator) -> None:
    """KAFKA-19154."""
    coordinator.commit(3, topic_id=b"a" * 16)
    assert coordinator.fetch(topic_id=b"b" * 16).committed_offset == -1
    assert coordinator.fetch(topic_id=b"a" * 16).committed_offset == 3
    assert coordinator.fetch().committed_offset == 3


def test_metadata_that_is_too_long_leaves_no_pending_offset() -> None:
    """KAFKA-16371."""
    coordinator = Coordinator(offset_metadata_max_bytes=2)
    errors = coordinator.commit_in_transaction("ok", "\U0001f600", "\U0001f600.")
    assert errors == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE]
    stable = [coordinator.fetch(index, require_stable=True).error_code for index in range(3)]
    unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert stable == [unstable, unstable, ErrorCode.NONE]


def test_offsets_of_a_group_that_rebalances_do_not_expire(coordinator: Coordinator) -> None:
    """KAFKA-13636."""
    coordinator.protocol_type = "connect"
    (member,) = coordinator.stable_group(None)
    coordinator.commit(3, member_id=member, generation=1)
    while coordinator.now < SWEEP_MS - SESSION_MS:
        coordinator.advance(SESSION_MS - 1)
        coordinator.heartbeat(member)
    coordinator.join(version=3)
    assert coordinator.group.is_in(_PREPARING)
    coordinator.advance(SWEEP_MS - coordinator.now)
    assert coordinator.group.is_in(_PREPARING)
    assert coordinator.fetch().committed_offset == 3


def test_a_retention_time_beyond_64_bits_wraps_around(coordinator: Coordinator) -> None:
    """As Java's numbers do: such offsets go with the next sweep."""
    coordinator.advance(1)
    assert coordinator.commit(3, retention_ms=2**63 - 1) is ErrorCode.NONE
    assert coordinator.fetch().committed_offset == 3
    coordinator.advance(SWEEP_MS)
    assert coordinator.fetch().committed_offset == -1


@pytest.mark.parametrize("version", [2, 3])
def test_offsets_without_an_expire_timestamp_do_not_expire_at_once(version: int) -> None:
    """KAFKA-8069."""
    coordinator = Coordinator()
    value = OffsetCommitValue(3, metadata="", commit_timestamp=SWEEP_MS - RETENTION_MS + 1)
    data = version.to_bytes(2, "big") + value.encode(version)
    coordinator.log.append((-1, b"\0\1" + OffsetCommitKey(GROUP, TOPIC, 0).encode(0), data))
    coordinator.reload()
    coordinator.advance(SWEEP_MS)
    assert coordinator.fetch().committed_offset == 3
    coordinator.advance(SWEEP_MS)
    assert coordinator.fetch().committed_offset == -1


def test_offsets_of_a_deleted_topic_go(coordinator: Coordinator) -> None:
    """KAFKA-2000."""
    coordinator.commit(3, topic_id=b"a" * 16)
    coordinator.append(coordinator.shard.on_topics_deleted([TopicImage(TOPIC, b"b" * 16)]))
    assert coordinator.fetch().committed_offset == 3
    coordinator.append(coordinator.shard.on_topics_deleted([TopicImage(TOPIC, b"a" * 16)]))
    assert coordinator.fetch().committed_offset == -1
    assert coordinator.log[-1][2] is None


def test_an_offset_of_a_later_version_is_refused() -> None:
    """KAFKA-18672: the meaning of its bytes is not known here."""
    key = OffsetCommitKey("group", "topic", 0)
    record = CoordinatorRecord(key, OffsetCommitValue(7), OFFSET_COMMIT_VALUE_VERSION)
    value = record.value_bytes()
    assert value is not None
    assert decode_record(record.key_bytes(), value) == record
    later = (OFFSET_COMMIT_VALUE_VERSION + 1).to_bytes(2, "big") + value[2:]
    with pytest.raises(DamagedRecordError):
        decode_record(record.key_bytes(), later)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 9])
def test_topics_are_read_of_every_version(version: int) -> None:
    body = ConsumerProtocolSubscription(topics=[TOPIC]).encode(min(version, 3))
    coordinator = Coordinator()
    coordinator.join(version=3, subscription=version.to_bytes(2, "big") + body)
    coordinator.advance(DELAY_MS)
    assert coordinator.group.subscribed_topics == frozenset({TOPIC})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\0\0\0",
        b"\0\0\x7f\xff\xff\xff",
        b"\0\0\xff\xff\xff\xff",
        b"\0\0\0\0\0\1\xff\xff" + bytes(8),
        b"\0\0\0\0\0\1\0\x20",
    ],
)
def test_bytes_that_cannot_be_read_mean_unknown_topics(data: bytes) -> None:
    """Kafka's join phase fails for the last four, and its group waits for ever."""
    coordinator = Coordinator()
    joined = coordinator.join(version=3, subscription=data)
    coordinator.advance(DELAY_MS)
    assert coordinator.join_error(joined) is ErrorCode.NONE
    assert coordinator.group.subscribed_topics is None
    assert coordinator.group.is_subscribed_to("any")


def test_a_classic_member_without_an_assignment_is_upgraded() -> None:
    """KAFKA-17733: there were more members than partitions."""
    group = MixedGroup()
    _, idle = group.stable_classic_group(assignment({"one": [0, 1]}), b"")
    group.consume("consumer", "one")
    assert owned_by(group.member(idle)) == {}


def test_a_static_member_comes_back_with_the_consumer_protocol() -> None:
    """KAFKA-17228: its classic self did not release the instance id."""
    group = MixedGroup()
    old, *_ = group.stable_classic_group(assignment({"one": [0, 1]}), instances=["i"])
    group.consume("consumer", "one", instance="i")
    assert group.consumer_group.members.get(old) is None
    assert owned_by(group.member("consumer")) == {"one": [0, 1]}


def test_a_classic_member_has_no_regular_expression_of_its_former_self() -> None:
    """KAFKA-19720."""
    group = MixedGroup()
    group.consume("other", "one")
    group.consume("consumer", regex="tw.*", instance="i")
    group.advance(0)
    assert set(group.consumer_group.subscribed_topics_of(group.member("consumer"))) == {"two"}
    joined = group.join_response(group.join_as_classic("", "one", instance="i"))
    assert set(group.consumer_group.subscribed_topics_of(group.member(joined.member_id))) == {"one"}


@pytest.mark.parametrize(
    ("topics", "state"),
    [(["one"], ClassicGroupState.STABLE), (["one", "two"], _PREPARING)],
)
def test_a_downgrade_by_a_member_with_other_topics_rebalances(
    topics: list[str], state: ClassicGroupState
) -> None:
    """KAFKA-19546."""
    group = MixedGroup()
    group.consume("consumer", "one", instance="i")
    group.join_as_classic("classic", "one")
    group.join_as_classic("", *topics, instance="i")
    assert group.group.is_in(state)
