"""The group coordinator's runtime: what loads, waits, fails and ends, also in transactions."""

import asyncio
import importlib
import logging
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.support.waiting import let_others_run
from tests.unit.node.coordinated_groups import (
    CONTEXT,
    OFFSETS,
    SETTINGS,
    TOPIC,
    TOPIC_ID,
    Coordinated,
    code_of,
)
from tests.unit.storage.topic_logs import append, batch_of, marker, sent

from kvorum.broker.add_partitions_to_txn import TransactionSupportedOperation
from kvorum.coordinator.coordinator_partition import coordinator_partition
from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.records import EXPIRING_OFFSET_COMMIT_VALUE_VERSION, decode_record
from kvorum.metadata.api import RequestError
from kvorum.metadata.topics_image import TopicImage
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.group_metadata_key import GroupMetadataKey
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.leave_group import LeaveGroupRequest
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kvorum.wire.messages.offset_commit_key import OffsetCommitKey
from kvorum.wire.messages.offset_commit_value import OffsetCommitValue
from kvorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kvorum.wire.records import (
    BatchOptions,
    Compression,
    ControlRecordType,
    RecordBatch,
    RecordData,
    build_batch,
    decode_control_record,
)
from kvorum.wire.records.compacted_batch import without_records

STREAMS_GROUP: Final = 17
"""The type of the records with the metadata of streams groups."""


@pytest.fixture
async def idle() -> Coordinated:
    """A broker that leads no partition yet."""
    return Coordinated()


@pytest.fixture
async def node(idle: Coordinated) -> Coordinated:
    """A broker that leads its partition in epoch 0."""
    await idle.lead()
    return idle


def write(node: Coordinated, batch: RecordBatch) -> None:
    node.log.append_as_leader(batch, leader_epoch=0, now_ms=0, origin=AppendOrigin.COORDINATOR)


def offset_record(offset: int, group: str = "g") -> RecordData:
    record = CoordinatorRecord(OffsetCommitKey(group, TOPIC, 0), OffsetCommitValue(offset), 4)
    return RecordData(record.value_bytes(), record.key_bytes(), 5)


async def test_a_broker_that_does_not_lead_is_not_a_coordinator(idle: Coordinated) -> None:
    assert await idle.commit(1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    idle.lose(leader_epoch=0)
    assert await idle.commit(1) is ErrorCode.NOT_COORDINATOR
    assert idle.states() == {}
    idle.service.runtime.close()
    assert idle.code_of_listing() is ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_what_is_in_the_log_is_known_when_it_is_loaded(idle: Coordinated) -> None:
    write(idle, batch_of(offset_record(3), offset_record(4)))
    write(idle, batch_of(RecordData(None, offset_record(0, "gone").key, 5)))
    write(idle, batch_of(RecordData(b"x", b"\x00\x63of a type to come", 5)))
    idle.register(leader_epoch=0)
    assert await idle.commit(9) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert idle.code_of_listing() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    kept = await idle.asked(idle.service.heartbeat, HeartbeatRequest("g", 1, "m"))
    assert kept.error_code == ErrorCode.NONE, "a member is kept while its group is loaded"
    await idle.loaded()
    assert await idle.offset() == 4
    assert idle.states() == {"g": "Empty"}


async def test_a_log_of_several_segments_is_loaded_from_its_start_on(idle: Coordinated) -> None:
    for offset in range(40):
        write(idle, batch_of(offset_record(offset, f"g-{offset % 4}")))
    idle.log.update_high_watermark(40)
    assert idle.log.local_log.size_bytes // idle.log.config.segments.segment_bytes > 1
    idle.log.delete_records(15, now_ms=0)
    await idle.lead()
    assert [await idle.offset(group=f"g-{number}") for number in range(4)] == [36, 37, 38, 39]
    assert await idle.commit(41) is ErrorCode.NONE
    idle.lose()
    idle.register(leader=1, leader_epoch=2)
    await idle.loaded()
    assert await idle.offset() == 41


async def test_a_log_whose_last_records_compaction_has_taken_is_loaded(idle: Coordinated) -> None:
    write(idle, batch_of(offset_record(3), offset_record(4)))
    write(idle, batch_of(offset_record(5), offset_record(6)))
    emptied = without_records(idle.batches()[-1])
    idle.log.truncate_to(2, now_ms=0)
    idle.log.append_as_follower(emptied, leader_epoch=0, now_ms=0)
    idle.register(leader_epoch=0)
    await idle.loaded()
    assert await idle.offset() == 4
    assert idle.log.log_end_offset == 4


async def test_a_batch_that_unpacks_to_much_is_loaded(idle: Coordinated) -> None:
    value = OffsetCommitValue(4, metadata="m" * 32_000)
    record = CoordinatorRecord(OffsetCommitKey("g", TOPIC, 0), value, 4)
    many = [RecordData(record.value_bytes(), record.key_bytes(), 5)] * 200
    data = build_batch(many, BatchOptions(compression=Compression.ZSTD))
    idle.log.append_as_follower(data, leader_epoch=0, now_ms=0)
    await idle.lead()
    assert await idle.offset() == 4


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
async def test_offsets_that_former_releases_wrote_are_loaded(codec: Compression) -> None:
    module: Any = importlib.import_module("aiokafka.record.legacy_records")
    builder = module.LegacyRecordBatchBuilder(1, int(codec), 1 << 20)
    for offset, value in enumerate((3, 4)):
        record = offset_record(value)
        builder.append(offset, timestamp=1, key=record.key, value=record.value)
    data = bytearray(builder.build())
    if codec is not Compression.NONE:
        # A message that wraps others has the offset of the last one.
        data[7] = 1
    node = Coordinated()
    last = node.log.append_as_follower(bytes(data), leader_epoch=0, now_ms=0)
    assert last is not None
    assert (last.last_offset, node.log.log_end_offset) == (1, 2)
    await node.lead()
    assert await node.offset() == 4
    assert await node.commit(5) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("kind", "expected"), [(ControlRecordType.COMMIT, 8), (ControlRecordType.ABORT, 3)]
)
async def test_offsets_of_a_transaction_count_with_its_marker(
    idle: Coordinated, kind: ControlRecordType, expected: int
) -> None:
    write(idle, batch_of(offset_record(3)))
    options = {"producer_id": 7, "producer_epoch": 0}
    write(idle, batch_of(offset_record(8), base_sequence=0, is_transactional=True, **options))
    write(idle, marker(kind, coordinator_epoch=0, **options))
    await idle.lead()
    assert await idle.offset() == expected


async def test_a_damaged_partition_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    node = Coordinated(partition_count=2)
    damaged, sound = "b", "g"
    assert [coordinator_partition(group, 2) for group in (damaged, sound)] == [0, 1]
    write(node, batch_of(RecordData(b"\0\x04cut off", offset_record(0).key, 5)))
    with caplog.at_level(logging.ERROR):
        await node.lead()
    assert "A coordinator could not be loaded" in caplog.text
    assert await node.commit(1, group=damaged) is ErrorCode.NOT_COORDINATOR
    assert await node.commit(1, group=sound) is ErrorCode.NONE
    assert node.states() == {sound: "Empty"}
    caplog.clear()
    node.register(leader_epoch=1)
    await node.loaded()
    assert "A coordinator could not be loaded" in caplog.text, "a new epoch is another chance"
    assert await node.offset(group=sound) == 1


async def test_an_answer_waits_until_its_records_are_committed(node: Coordinated) -> None:
    assert await node.commit(1) is ErrorCode.NONE
    node.hold()
    waiting = asyncio.create_task(node.commit(2))
    newest = asyncio.create_task(node.offset(is_stable=True))
    leaving = asyncio.create_task(
        node.asked(
            node.service.leave_group,
            LeaveGroupRequest("g", members=[LeaveGroupRequest.MemberIdentity("m")]),
        )
    )
    await let_others_run()
    assert not any(task.done() for task in (waiting, newest, leaving))
    assert await node.offset() == 1
    node.release()
    assert await waiting is ErrorCode.NONE
    assert await newest == 2
    assert (await leaving).members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert await node.offset() == 2


async def test_a_commit_that_takes_too_long_is_refused_and_stands() -> None:
    node = Coordinated(replace(SETTINGS, commit_timeout_ms=10))
    await node.lead()
    node.hold()
    assert await node.commit(5) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await code_of(node.offset(is_stable=True)) is ErrorCode.NOT_COORDINATOR
    assert await node.offset() == -1
    node.release()
    assert await node.offset() == 5


async def test_all_who_wait_hear_that_the_leader_is_another(node: Coordinated) -> None:
    member = await node.join()
    joining = asyncio.create_task(node.join())
    await asyncio.sleep(0)
    node.hold()
    committing = asyncio.create_task(node.commit(5, group="other"))
    await asyncio.sleep(0)
    assert member.error_code == ErrorCode.NONE
    assert not joining.done()
    node.lose()
    assert (await joining).error_code == ErrorCode.NOT_COORDINATOR
    assert await committing is ErrorCode.NOT_COORDINATOR
    assert await node.commit(6, group="other") is ErrorCode.NOT_COORDINATOR
    assert node.states() == {}


async def test_a_leader_that_hears_late_of_its_loss_appends_nothing(node: Coordinated) -> None:
    end = node.log.log_end_offset
    node.partitions[0].make_follower(node.registration._replace(leader_epoch=1))
    assert await node.commit(5) is ErrorCode.NOT_COORDINATOR
    assert node.log.log_end_offset == end
    assert node.states() == {}, "the group of the commit is taken back"


async def test_what_another_leader_commits_completes_nothing(node: Coordinated) -> None:
    node.hold()
    waiting = asyncio.create_task(node.commit(5))
    await asyncio.sleep(0)
    end = node.log.log_end_offset
    partition = node.partitions[0]
    partition.make_follower(node.registration._replace(leader=2, leader_epoch=1))
    node.log.truncate_to(0, now_ms=0)
    for _ in range(end):
        append(node.log, sent(b"of the other leader"))
    partition.follow_leader(end, 0, wall_ms=0)
    assert node.log.high_watermark == end
    await asyncio.sleep(0)
    assert not waiting.done()
    node.lose()
    assert await waiting is ErrorCode.NOT_COORDINATOR


async def test_an_old_epoch_ends_nothing_and_a_new_one_loads_nothing(node: Coordinated) -> None:
    await node.join()
    node.register(leader_epoch=5)
    assert node.states() == {"g": "CompletingRebalance"}, "nothing is loaded again"
    topic = node.image.topics.by_name(OFFSETS)
    assert topic is not None
    old = node.registration._replace(leader=2, leader_epoch=4)
    node.publish(topic._replace(partitions=type(topic.partitions)((old,))))
    assert node.states() == {"g": "CompletingRebalance"}


async def test_records_of_another_broker_are_loaded(
    node: Coordinated, caplog: pytest.LogCaptureFixture
) -> None:
    append(node.log, sent(b"not read before"))
    write(node, batch_of(offset_record(7)))
    with caplog.at_level(logging.ERROR):
        assert await node.commit(1, group="other") is ErrorCode.NOT_COORDINATOR
        await node.loaded()
    assert "others have written" in caplog.text
    # A record without a key is none of a coordinator's.
    assert await node.commit(1) is ErrorCode.NOT_COORDINATOR
    fresh = Coordinated()
    await fresh.lead()
    write(fresh, batch_of(offset_record(7)))
    assert await fresh.commit(1, group="other") is ErrorCode.NOT_COORDINATOR
    await fresh.loaded()
    assert (await fresh.offset(), await fresh.offset(group="other")) == (7, 1)


async def test_what_the_log_refuses_is_taken_back(node: Coordinated) -> None:
    wish = OffsetCommitRequestPartition(0, 1, committed_metadata="x" * 600)
    request = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic(TOPIC, TOPIC_ID, [wish])])
    refused = await code_of(node.asked(node.service.commit_offsets, CONTEXT, request))
    assert refused is ErrorCode.UNKNOWN_SERVER_ERROR
    assert node.states() == {}
    of_member = OffsetCommitRequest("g", 1, "member", topics=request.topics)
    unknown = await code_of(node.asked(node.service.commit_offsets, CONTEXT, of_member))
    assert unknown is ErrorCode.ILLEGAL_GENERATION, "the group of the commit is not there"
    assert await node.commit(2) is ErrorCode.NONE
    assert await node.offset() == 2


async def test_an_assignment_that_cannot_be_written_has_the_group_join_again(
    node: Coordinated,
) -> None:
    member = await node.join()
    request = SyncGroupRequest(
        "g",
        member.generation_id,
        member.member_id,
        assignments=[SyncGroupRequestAssignment(member.member_id, b"a" * 600)],
    )
    too_large = await node.asked(node.service.sync_group, request)
    assert too_large.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    request.assignments = [SyncGroupRequestAssignment(member.member_id, b"a")]
    again = await node.asked(node.service.sync_group, request)
    assert again.error_code == ErrorCode.REBALANCE_IN_PROGRESS


async def test_an_assignment_with_a_member_whose_id_no_record_can_hold_is_taken_back(
    node: Coordinated,
) -> None:
    member = await node.join(client_id="x" * 32_767)
    assignment = SyncGroupRequestAssignment(member.member_id, b"a")
    request = SyncGroupRequest("g", 1, member.member_id, assignments=[assignment])
    refused = await node.asked(node.service.sync_group, request)
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    again = await node.asked(node.service.sync_group, request)
    assert again.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert await node.commit(5, group="h") is ErrorCode.NONE


async def test_a_member_that_is_silent_is_removed(node: Coordinated) -> None:
    member = await node.join(session_ms=30)
    assignment = SyncGroupRequestAssignment(member.member_id, b"a")
    request = SyncGroupRequest("g", 1, member.member_id, assignments=[assignment])
    assert (await node.asked(node.service.sync_group, request)).assignment == b"a"
    assert node.states() == {"g": "Stable"}
    await node.until(lambda: node.states() == {"g": "Empty"})
    beat = HeartbeatRequest("g", 1, member.member_id)
    assert await code_of(node.asked(node.service.heartbeat, beat)) is ErrorCode.UNKNOWN_MEMBER_ID


async def test_offsets_expire() -> None:
    coordinator = replace(
        SETTINGS.coordinator, offsets_retention_ms=1, offsets_retention_check_interval_ms=20
    )
    node = Coordinated(replace(SETTINGS, coordinator=coordinator))
    await node.lead()
    assert await node.commit(1) is ErrorCode.NONE
    await node.until(lambda: not node.states())
    assert [is_tombstone for _, is_tombstone in node.records()] == [False, True, True]


def group_record(type_id: int, group: str, value: bytes | None = b"\0\0") -> RecordData:
    key = type_id.to_bytes(2, "big") + len(group).to_bytes(2, "big") + group.encode()
    return RecordData(value, key, 5)


@pytest.fixture
async def shared() -> Coordinated:
    """A broker whose partition has a streams group with an offset, beside the classic group g."""
    coordinator = replace(
        SETTINGS.coordinator, offsets_retention_ms=1, offsets_retention_check_interval_ms=20
    )
    node = Coordinated(replace(SETTINGS, coordinator=coordinator))
    write(node, batch_of(offset_record(3, "other"), group_record(STREAMS_GROUP, "other")))
    write(node, batch_of(offset_record(4, "other"), offset_record(5, "g")))
    await node.lead()
    return node


async def test_a_commit_with_a_time_of_its_own_is_written_with_its_end(node: Coordinated) -> None:
    wish = OffsetCommitRequestTopic(TOPIC, TOPIC_ID, [OffsetCommitRequestPartition(0, 1)])
    request = OffsetCommitRequest("g", retention_time_ms=1_000, topics=[wish])
    assert (
        await code_of(node.asked(node.service.commit_offsets, CONTEXT, request)) is ErrorCode.NONE
    )
    (written,) = node.batches()[-1].records()
    assert written.key is not None
    record = decode_record(written.key, written.value)
    assert record is not None
    assert isinstance(record.value, OffsetCommitValue)
    assert record.version == EXPIRING_OFFSET_COMMIT_VALUE_VERSION
    assert record.value.expire_timestamp == record.value.commit_timestamp + 1_000


async def test_a_group_of_another_protocol_leaves_the_classic_groups_served(
    shared: Coordinated,
) -> None:
    assert await shared.commit(6) is ErrorCode.NONE
    assert await shared.commit(6, group="other") is ErrorCode.NOT_COORDINATOR
    with pytest.raises(RequestError, match="correct coordinator"):
        await shared.offset(group="other")
    described = shared.service.describe_group(6, "other")
    assert described.error_code == ErrorCode.NOT_COORDINATOR
    deleted = await shared.asked(shared.service.delete_groups, ["other", "unknown"])
    assert {one.group_id: one.error_code for one in deleted} == {
        "other": ErrorCode.NOT_COORDINATOR,
        "unknown": ErrorCode.GROUP_ID_NOT_FOUND,
    }


async def test_offsets_of_a_group_of_another_protocol_do_not_expire(shared: Coordinated) -> None:
    await shared.until(lambda: not shared.states())
    ended = [
        key.group
        for key, is_end in shared.records()
        if is_end and isinstance(key, OffsetCommitKey | GroupMetadataKey)
    ]
    assert ended == ["g", "g"]


async def test_a_group_of_another_protocol_that_has_ended_may_be_a_classic_one(
    idle: Coordinated,
) -> None:
    write(idle, batch_of(group_record(STREAMS_GROUP, "g"), offset_record(3)))
    write(idle, batch_of(RecordData(None, offset_record(0).key, 5)))
    write(idle, batch_of(group_record(STREAMS_GROUP, "g", None)))
    await idle.lead()
    assert await idle.commit(1) is ErrorCode.NONE


async def test_offsets_of_a_topic_end_with_it_in_batches_that_fit(node: Coordinated) -> None:
    node.publish(TopicImage(TOPIC, TOPIC_ID))
    for partition in range(40):
        assert await node.commit(1, partition=partition) is ErrorCode.NONE
    count = len(node.batches())
    node.publish(without=TOPIC)
    await node.offset(is_stable=True)
    tombstones = node.batches()[count:]
    assert sum(batch.record_count for batch in tombstones) == 40
    assert len(tombstones) > 1
    assert all(batch.size <= 500 for batch in tombstones)
    assert await node.offset() == -1


async def test_a_topic_that_goes_while_groups_are_loaded_is_not_forgotten() -> None:
    node = Coordinated()
    write(node, batch_of(offset_record(3)))
    node.publish(TopicImage(TOPIC, TOPIC_ID))
    node.register(leader_epoch=0)
    node.publish(without=TOPIC)
    await node.loaded()
    assert await node.offset(is_stable=True) == -1
    assert await node.offset() == -1
    assert node.records()[-1] == (OffsetCommitKey("g", TOPIC, 0), True)


async def test_a_deleted_offsets_topic_ends_its_coordinators(node: Coordinated) -> None:
    joined = asyncio.create_task(node.join())
    await asyncio.sleep(0)
    node.publish(without=OFFSETS)
    assert (await joined).error_code == ErrorCode.NOT_COORDINATOR
    assert await node.commit(1) is ErrorCode.NOT_COORDINATOR


async def test_batches_are_those_of_a_kafka_coordinator(node: Coordinated) -> None:
    assert await node.commit(1) is ErrorCode.NONE
    (batch,) = node.batches()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, 0)
    assert (batch.record_count, batch.partition_leader_epoch) == (1, 0)


@pytest.mark.parametrize(("is_commit", "expected"), [(True, 8), (False, 3)])
async def test_offsets_of_a_transaction_count_when_it_is_committed(
    node: Coordinated, expected: int, *, is_commit: bool
) -> None:
    assert await node.commit(3) is ErrorCode.NONE
    assert await node.commit_in_transaction(8) is ErrorCode.NONE
    assert await node.offset() == 3
    assert await node.end_transaction(is_commit=is_commit) is ErrorCode.NONE
    assert await node.offset() == expected
    _, data, end = node.batches()
    assert (data.producer_id, data.producer_epoch, data.base_sequence) == (7, 0, 0)
    assert data.is_transactional
    assert (end.producer_id, end.is_control, end.is_transactional) == (7, True, True)
    kind = ControlRecordType.COMMIT if is_commit else ControlRecordType.ABORT
    assert [decode_control_record(one).type for one in end.records()] == [kind]
    node.lose()
    node.register(leader=1, leader_epoch=2)
    await node.loaded()
    assert await node.offset() == expected, "the log says the same"


async def test_a_marker_is_answered_when_its_offsets_are_visible(node: Coordinated) -> None:
    assert await node.commit_in_transaction(8) is ErrorCode.NONE
    node.hold()
    ending = asyncio.create_task(node.end_transaction())
    await let_others_run()
    assert not ending.done()
    assert await node.offset() == -1
    node.release()
    assert await ending is ErrorCode.NONE
    assert await node.offset() == 8


async def test_a_marker_that_is_not_replicated_in_time_is_refused() -> None:
    node = Coordinated(replace(SETTINGS, commit_timeout_ms=10))
    await node.lead()
    node.hold()
    assert await node.end_transaction() is ErrorCode.REQUEST_TIMED_OUT


async def test_the_coordinator_is_asked_before_anything_is_written(node: Coordinated) -> None:
    node.transactions.error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    for version in (3, 4, 5):
        refused = await node.commit_in_transaction(8, version=version)
        assert refused is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert node.batches() == []
    assert [one.operation for one in node.transactions.asked] == list(TransactionSupportedOperation)
    node.transactions.error = ErrorCode.NETWORK_EXCEPTION
    refused = await node.commit_in_transaction(8)
    assert refused is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "older clients repeat upon this"


async def test_a_marker_during_the_verification_keeps_the_offsets_out(node: Coordinated) -> None:
    node.transactions.goes_on.clear()
    late = asyncio.create_task(node.commit_in_transaction(8, version=4))
    await asyncio.sleep(0)
    assert await node.end_transaction(is_commit=False) is ErrorCode.NONE
    node.transactions.goes_on.set()
    assert await late is ErrorCode.INVALID_TXN_STATE
    assert len(node.batches()) == 1, "the marker alone"


async def test_nothing_is_written_where_no_partition_is_accepted(node: Coordinated) -> None:
    too_long = await node.commit_in_transaction(8, metadata="x" * 5000)
    assert too_long is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert node.batches() == []


async def test_markers_of_the_past_are_refused_and_change_nothing(node: Coordinated) -> None:
    assert await node.commit_in_transaction(8, epoch=1) is ErrorCode.NONE
    assert await node.end_transaction(epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH
    same = await node.end_transaction(epoch=1, transaction_version=2)
    assert same is ErrorCode.INVALID_PRODUCER_EPOCH, "of the transaction before"
    assert await node.offset() == -1
    assert await node.end_transaction(epoch=2, coordinator_epoch=5, transaction_version=2) is (
        ErrorCode.NONE
    )
    assert await node.offset() == 8
    again = await node.end_transaction(epoch=2, coordinator_epoch=5, transaction_version=2)
    assert again is ErrorCode.NONE, "its answer was lost"
    fenced = await node.end_transaction(epoch=2, coordinator_epoch=4, transaction_version=2)
    assert fenced is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert await node.commit(9) is ErrorCode.NONE, "the coordinator goes on"


async def test_a_fenced_producer_commits_nothing(node: Coordinated) -> None:
    assert await node.end_transaction(epoch=3) is ErrorCode.NONE
    assert await node.commit(1) is ErrorCode.NONE
    assert await node.commit_in_transaction(8, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await node.commit_in_transaction(8, epoch=3) is ErrorCode.NONE
    assert await node.end_transaction(epoch=4, transaction_version=2) is ErrorCode.NONE
    assert await node.offset() == 8


async def test_a_broker_that_is_not_a_coordinator_ends_no_transaction(idle: Coordinated) -> None:
    assert await idle.end_transaction() is ErrorCode.NOT_COORDINATOR
    assert await idle.commit_in_transaction(1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    idle.register(leader_epoch=0)
    assert await idle.end_transaction() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    await idle.loaded()
    idle.service.runtime.close()
    assert await idle.end_transaction() is ErrorCode.COORDINATOR_NOT_AVAILABLE
