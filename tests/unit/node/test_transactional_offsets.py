"""Offsets in transactions on the group coordinator: verified, written, ended and refused."""

import asyncio
from dataclasses import replace

import pytest
from tests.support.waiting import let_others_run
from tests.unit.node.coordinated_groups import SETTINGS, Coordinated

from kvorum.broker.add_partitions_to_txn import TransactionSupportedOperation
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import ControlRecordType, decode_control_record


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
    old = await node.end_transaction(epoch=0)
    assert old is ErrorCode.INVALID_PRODUCER_EPOCH
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
