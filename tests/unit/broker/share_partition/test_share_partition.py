"""Records of a share group: their members, their writes, and their end."""

from __future__ import annotations

import gzip
import struct
import zlib

import pytest
from tests.unit.broker.share_partition.group import LOCK_MS, STATE_EPOCH, Group, settings
from tests.unit.peak_memory import peak_memory_below

from kvorum.broker.share_partition.acknowledgement import AcknowledgeType
from kvorum.broker.share_partition.acquisition import ShareAcquireMode
from kvorum.broker.share_partition.acquisition_lock import AcquisitionLocks
from kvorum.broker.share_partition.in_flight_state import InFlightState
from kvorum.broker.share_partition.overlapping_records import overlapping_records
from kvorum.broker.share_partition.persister_error import persister_error
from kvorum.broker.share_partition.record_state import RecordState
from kvorum.broker.share_partition.share_partition import SharePartitionState
from kvorum.broker.share_partition.state_write import DeadLetterCause
from kvorum.metadata.api import RequestError
from kvorum.storage.log.transaction_index import AbortedTransaction
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.read_share_group_state import (
    ReadShareGroupStateResponse,
    ReadShareGroupStateResponseStateBatch,
)
from kvorum.wire.messages.share_fetch import ShareFetchResponse
from kvorum.wire.records import BatchOptions, RecordBatch, RecordData, build_batch
from kvorum.wire.records.legacy import read_entries

ACCEPT = AcknowledgeType.ACCEPT
RELEASE = AcknowledgeType.RELEASE
REJECT = AcknowledgeType.REJECT
AVAILABLE = RecordState.AVAILABLE
ACKNOWLEDGED = RecordState.ACKNOWLEDGED
ARCHIVING = RecordState.ARCHIVING
ARCHIVED = RecordState.ARCHIVED


def message(offset: int, value: bytes, attributes: int = 0) -> bytes:
    """Return a message of format 1, without a key."""
    body = struct.pack(">bbqi", 1, attributes, 1, -1) + struct.pack(">i", len(value)) + value
    covered = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(covered)) + covered


@pytest.fixture
def group() -> Group:
    """A group that begins with a log of ten records, in batches of five."""
    group = Group()
    group.load()
    group.append(5, 5)
    return group


def refusal(group: Group, member_id: str, first: int, last: int) -> ErrorCode:
    """Return the code with which an acceptance is refused."""
    with pytest.raises(RequestError) as refused:
        group.acknowledge(member_id, ACCEPT, (first, last))
    return refused.value.code


def test_what_one_member_has_no_other_one_gets(group: Group) -> None:
    assert group.acquire("anne", 3) == [(0, 4, 1)]
    assert group.acquire("bert") == [(5, 9, 1)]
    assert group.acquire("carl") == []
    assert refusal(group, "bert", 0, 4) is ErrorCode.INVALID_RECORD_STATE


def test_a_record_limit_is_kept_within_a_batch(group: Group) -> None:
    assert group.acquire("anne", 3, mode=ShareAcquireMode.RECORD_LIMIT) == [(0, 2, 1)]
    assert group.acquire("bert", 2, mode=ShareAcquireMode.RECORD_LIMIT) == [(3, 4, 1)]


def test_accepted_records_are_written_and_then_forgotten(group: Group) -> None:
    group.acquire("anne")
    write = group.acknowledge("anne", ACCEPT, (0, 9))
    assert write is not None
    data = write.data
    assert (data.state_epoch, data.leader_epoch, data.start_offset) == (STATE_EPOCH, 7, 0)
    assert data.delivery_complete_count == 10
    (batch,) = data.state_batches
    assert (batch.first_offset, batch.last_offset, batch.delivery_state) == (0, 9, ACKNOWLEDGED)
    assert group.partition.start_offset == 0
    group.complete(write)
    assert group.partition.start_offset == 10
    assert group.partition.records.record_count == 0


def test_a_failed_write_leaves_records_to_their_member(group: Group) -> None:
    group.acquire("anne")
    completed = group.complete(
        group.acknowledge("anne", RELEASE, (0, 9)), ErrorCode.COORDINATOR_NOT_AVAILABLE
    )
    assert completed.refusal is not None
    assert group.acquire("bert") == []
    assert group.acknowledge("anne", ACCEPT, (0, 9)) is not None


def test_a_failed_write_after_the_lock_leaves_records_to_all(group: Group) -> None:
    group.acquire("anne")
    write = group.acknowledge("anne", ACCEPT, (0, 9))
    assert group.pass_time(LOCK_MS) is None
    assert group.acquire("bert") == []
    group.complete(write, ErrorCode.FENCED_STATE_EPOCH)
    assert group.acquire("bert") == [(0, 9, 2)]


def test_a_refused_acknowledgement_changes_no_part_of_it(group: Group) -> None:
    group.acquire("anne", 5)
    group.acquire("bert", 5)
    with pytest.raises(RequestError):
        group.acknowledge("anne", ACCEPT, (0, 4), (5, 9))
    assert group.partition.records.delivery_complete_count == 0
    assert group.acknowledge("anne", ACCEPT, (0, 4)) is not None


def test_a_renewed_lock_holds_from_then_on(group: Group) -> None:
    group.acquire("anne")
    group.pass_time(LOCK_MS - 1)
    assert group.acknowledge("anne", AcknowledgeType.RENEW, (0, 9)) is None
    assert group.pass_time(LOCK_MS - 1) is None
    write = group.pass_time(1)
    assert write is not None
    assert [one.delivery_state for one in write.data.state_batches] == [AVAILABLE]


def test_records_of_a_member_that_leaves_are_released(group: Group) -> None:
    group.acquire("anne", 5)
    group.acquire("bert", 5)
    group.complete(group.partition.release_acquired_records("anne"))
    assert group.acquire("carl") == [(0, 4, 2)]


def test_a_record_is_delivered_alone_the_last_time_and_then_archived() -> None:
    group = Group(settings(delivery_count_limit=3))
    group.load()
    group.append(4)
    assert group.acquire("anne") == [(0, 3, 1)]
    group.expire_all()
    assert group.acquire("anne") == [(0, 3, 2)]
    group.expire_all()
    assert [group.acquire("anne") for _ in range(4)] == [[(one, one, 3)] for one in range(4)]
    group.expire_all()
    assert group.partition.start_offset == 4


@pytest.mark.parametrize(
    ("kind", "limit", "cause"),
    [
        (REJECT, 5, DeadLetterCause.CLIENT_REJECT),
        (RELEASE, 1, DeadLetterCause.DELIVERY_COUNT_EXCEEDED),
    ],
)
def test_dead_letters_are_archived_once_they_are_copied(
    kind: AcknowledgeType, limit: int, cause: DeadLetterCause
) -> None:
    group = Group(settings(delivery_count_limit=limit, has_dead_letters=True))
    group.load()
    group.append(2)
    group.acquire("anne")
    write = group.acknowledge("anne", kind, (0, 1))
    assert write is not None
    assert [one.delivery_state for one in write.data.state_batches] == [ARCHIVING]
    (dead_letter,) = group.complete(write).dead_letters
    assert (dead_letter.first_offset, dead_letter.last_offset) == (0, 1)
    assert dead_letter.cause is cause
    assert group.partition.start_offset == 0
    written = group.partition.complete_dead_letters([dead_letter])
    assert [one.delivery_state for one in written.data.state_batches] == [ARCHIVED]
    group.complete(written)
    assert group.partition.start_offset == 2


def test_dead_letters_of_a_stored_state_are_completed() -> None:
    group = Group(settings(delivery_count_limit=3, has_dead_letters=True))
    assert group.partition.begin_initialization()
    stored = [
        ReadShareGroupStateResponseStateBatch(0, 4, ARCHIVING, 1),
        ReadShareGroupStateResponseStateBatch(5, 9, ARCHIVING, 3),
    ]
    result = ReadShareGroupStateResponse.PartitionResult(0, 0, None, 1, 0, stored)
    dead_letters = group.partition.initialize(result, reset_offset=0)
    assert [one.cause for one in dead_letters] == list(DeadLetterCause)
    group.bury(dead_letters)
    assert group.partition.start_offset == 10


def test_records_in_the_gaps_of_a_stored_state_are_delivered() -> None:
    group = Group()
    group.load((0, 4, AVAILABLE, 1), (10, 14, ACKNOWLEDGED, 1))
    group.append(5, 5, 5, 5)
    assert group.acquire("anne") == [(0, 4, 2), (5, 9, 1), (15, 19, 1)]


def test_a_group_whose_log_has_lost_a_gap_goes_on_after_it() -> None:
    """Kafka asks for offset 5 for ever: it is out of range, and before the start offset."""
    group = Group()
    group.load((0, 4, AVAILABLE, 1), (10, 14, AVAILABLE, 1))
    group.move_log_start(8)
    assert group.partition.next_fetch_offset() == 8


@pytest.mark.parametrize("last", [4, 9])
def test_records_below_the_start_of_the_log_are_not_fetched_again(group: Group, last: int) -> None:
    """Kafka asks for them for ever where a write fails after their lock has expired."""
    group.acquire("anne")
    write = group.acknowledge("anne", ACCEPT, (0, last))
    group.move_log_start(3)
    group.pass_time(LOCK_MS)
    group.complete(write, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert group.partition.next_fetch_offset() == 3
    group.acquire("anne")
    group.complete(group.acknowledge("anne", ACCEPT, (3, 9)))
    assert group.partition.start_offset == 10


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_release_goes_on_where_the_log_start_moves_into_its_batch(
    group: Group, error: ErrorCode
) -> None:
    """Kafka gives the records to another member at once, and throws."""
    group.acquire("anne")
    write = group.acknowledge("anne", RELEASE, (0, 9))
    group.move_log_start(3)
    assert group.acquire("bert") == []
    group.complete(write, error)
    assert group.acquire("bert") == ([] if error else [(3, 9, 2)])


def test_records_of_aborted_transactions_are_archived() -> None:
    group = Group()
    group.load(start_offset=2)
    transactional = BatchOptions(producer_id=1, producer_epoch=0, is_transactional=True)
    group.append(4, options=transactional)
    group.append(2)
    # Kafka throws for a batch that begins before the start offset.
    assert group.acquire("anne", aborted=(AbortedTransaction(1, 0, 9, 9),)) == [(4, 5, 1)]
    group.complete(group.acknowledge("anne", ACCEPT, (4, 5)))
    assert group.partition.start_offset == 6


def test_an_acknowledgement_of_nothing_in_flight_is_refused(group: Group) -> None:
    group.move_log_start(5)
    # Kafka throws for a batch with the start offset within.
    assert refusal(group, "anne", 3, 7) is ErrorCode.INVALID_RECORD_STATE
    group.acquire("anne")
    assert refusal(group, "anne", 10, 12) is ErrorCode.INVALID_REQUEST
    assert refusal(group, "anne", 5, 12) is ErrorCode.INVALID_REQUEST


def test_no_more_is_acquired_than_may_be_in_flight() -> None:
    group = Group(settings(record_locks_max=8))
    group.load()
    group.append(5, 5, 5)
    assert group.acquire("anne") == [(0, 9, 1)]
    assert not group.partition.can_acquire_records()
    assert group.acquire("anne") == []
    group.complete(group.acknowledge("anne", RELEASE, (0, 4)))
    assert group.partition.can_acquire_records()
    assert group.acquire("anne") == [(0, 4, 2)]


def test_a_share_partition_is_used_once_its_state_is_read() -> None:
    group = Group()
    group.append(5)
    assert group.acquire("anne") == []
    assert group.partition.begin_initialization()
    with pytest.raises(RequestError) as refused:
        group.partition.begin_initialization()
    assert refused.value.code is ErrorCode.LEADER_NOT_AVAILABLE
    result = ReadShareGroupStateResponse.PartitionResult(start_offset=-1)
    group.partition.initialize(result, reset_offset=2)
    assert not group.partition.begin_initialization()
    assert group.acquire("anne") == [(2, 4, 1)]


@pytest.mark.parametrize("batch", [(4, 9, 0, 1), (9, 8, 0, 1), (5, 9, 7, 1)])
def test_a_stored_state_that_cannot_be_is_not_used(batch: tuple[int, int, int, int]) -> None:
    group = Group()
    with pytest.raises(RequestError) as refused:
        group.load(batch, start_offset=5)
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert group.partition.state is SharePartitionState.FAILED
    with pytest.raises(RequestError) as refused:
        group.partition.begin_initialization()
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_later_stored_batch_replaces_one_that_begins_alike() -> None:
    group = Group()
    group.load((0, 4, ACKNOWLEDGED, 1), (0, 2, AVAILABLE, 1))
    assert len(group.partition.records.batches) == 1
    group.append(3)
    assert group.acquire("anne") == [(0, 2, 2)]


def test_a_share_partition_fenced_while_its_state_is_read_stays_fenced() -> None:
    group = Group()
    assert group.partition.begin_initialization()
    group.partition.mark_fenced()
    with pytest.raises(RequestError) as refused:
        group.partition.initialize(ReadShareGroupStateResponse.PartitionResult(), reset_offset=0)
    assert refused.value.code is ErrorCode.LEADER_NOT_AVAILABLE
    with pytest.raises(RequestError):
        group.partition.begin_initialization()
    assert group.partition.state is SharePartitionState.FENCED


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.NETWORK_EXCEPTION, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_errors_of_the_persister_as_clients_see_them(error: ErrorCode, seen: ErrorCode) -> None:
    refused = persister_error(error, "why")
    assert refused is not None
    assert refused.code is seen


def test_one_fetch_at_a_time_acquires(group: Group) -> None:
    partition = group.partition
    assert partition.maybe_acquire_fetch_lock("first", 0)
    assert not partition.maybe_acquire_fetch_lock("second", 5)
    assert partition.release_fetch_lock(10) == (10, 100)
    assert partition.maybe_acquire_fetch_lock("second", 40)
    assert partition.release_fetch_lock(50) == (10, 25)
    assert partition.maybe_acquire_fetch_lock("third", 70)
    # Held for no time at all counts as one millisecond.
    assert partition.release_fetch_lock(70) == (0, 5)
    assert partition.maybe_acquire_fetch_lock("soon after", 70.25)
    assert partition.release_fetch_lock(70.25) == (0, 100)
    partition.mark_fenced()
    assert not partition.maybe_acquire_fetch_lock("fourth", 80)


def test_a_record_makes_no_move_that_no_table_has() -> None:
    state = InFlightState(ACKNOWLEDGED, 1)
    with pytest.raises(ValueError, match="ACKNOWLEDGED does not become AVAILABLE"):
        state.let_go(AVAILABLE, settings())


def test_cancelled_locks_take_no_memory_until_their_deadlines() -> None:
    locks = AcquisitionLocks()
    with peak_memory_below(2_000_000):
        for offset in range(50_000):
            locks.begin(offset, offset, deadline_ms=LOCK_MS).is_cancelled = True
    assert locks.next_deadline_ms is None


def message_set(first: int, last: int) -> bytes:
    """Return a message of format 1 that wraps others, which has the offset of the last one."""
    inner = b"".join(message(index, b"value") for index in range(last - first + 1))
    return message(last, gzip.compress(inner), attributes=1)


def test_all_messages_of_a_compressed_set_are_delivered() -> None:
    group = Group()
    group.load()
    group.log.extend(read_entries(message_set(0, 2)))
    assert group.acquire("anne") == [(0, 2, 1)]


@pytest.mark.parametrize("is_old", [True, False])
@pytest.mark.parametrize(
    ("first", "last", "sent"),
    [(0, 2, range(1)), (3, 5, range(1, 2)), (4, 4, range(1, 2)), (2, 6, range(3))],
)
def test_members_are_sent_the_batches_of_what_they_acquire(
    first: int, last: int, sent: range, *, is_old: bool
) -> None:
    if is_old:
        batches = [message_set(0, 2), message_set(3, 5), message_set(6, 8)]
    else:
        value = [RecordData(None, b"value")]
        batches = [build_batch(value * 3, BatchOptions(base_offset=one)) for one in (0, 3, 6)]
    records = memoryview(b"".join(batches))
    acquired = [ShareFetchResponse.AcquiredRecords(first, last, 1)]
    found = overlapping_records(records, list(read_entries(records)), acquired)
    assert found == b"".join(batches[one] for one in sent)


@pytest.mark.parametrize("mode", ShareAcquireMode)
def test_a_few_records_of_a_huge_batch_take_little_memory(mode: ShareAcquireMode) -> None:
    """A batch that packs well may have millions of records: a state for each fills the memory."""
    group = Group()
    group.load()
    group.append(1)
    (batch,) = group.log
    assert isinstance(batch, RecordBatch)
    group.log[:] = [batch._replace(last_offset_delta=5_000_000 - 1)]
    with peak_memory_below(20_000_000):
        group.acquire("anne", 5, mode=mode)
        group.complete(group.acknowledge("anne", ACCEPT, (1, 3)))
        if mode is ShareAcquireMode.RECORD_LIMIT:
            assert group.acquire("bert", 5, mode=mode) == [(5, 9, 1)]
        group.expire_all()
        assert group.acquire("carl", 2, mode=ShareAcquireMode.RECORD_LIMIT) == [
            (0, 0, 2),
            (4, 4, 2),
        ]


def test_a_few_records_of_a_huge_stored_batch_take_little_memory() -> None:
    group = Group()
    group.load((0, 5_000_000 - 1, AVAILABLE, 1))
    group.append(10)
    with peak_memory_below(20_000_000):
        assert group.acquire("anne", 5, mode=ShareAcquireMode.RECORD_LIMIT) == [(0, 4, 2)]
