"""Joins and syncs of classic members in a consumer group: they wait for the log."""

import asyncio
from dataclasses import replace

import pytest
from tests.unit.node.coordinated_groups import CONTEXT, TOPIC, Coordinated, code_of

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kvorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kvorum.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kvorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

SUBSCRIPTION = bytes(2) + ConsumerProtocolSubscription([TOPIC]).encode(0)
MEMBER = "classic"


@pytest.fixture
async def node() -> Coordinated:
    """A coordinator of group g, in which a member of the consumer protocol is."""
    node = Coordinated()
    await node.lead()
    request = ConsumerGroupHeartbeatRequest(
        "g",
        "consumer",
        0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    await node.asked(node.service.consumer_group_heartbeat, replace(CONTEXT, version=1), request)
    return node


async def join(node: Coordinated) -> JoinGroupResponse:
    request = JoinGroupRequest(
        "g",
        30_000,
        30_000,
        member_id=MEMBER,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", SUBSCRIPTION)],
    )
    return await node.asked(node.service.join_group, replace(CONTEXT, version=5), request)


async def sync(node: Coordinated, generation: int) -> SyncGroupResponse:
    request = SyncGroupRequest("g", generation, MEMBER)
    return await node.asked(node.service.sync_group, request)


async def test_answers_wait_until_what_was_written_before_is_committed(node: Coordinated) -> None:
    node.hold()
    joining = asyncio.create_task(join(node))
    await asyncio.sleep(0)
    assert not joining.done()
    node.release()
    joined = await joining
    assert joined.error_code == ErrorCode.NONE
    node.hold()
    committing = asyncio.create_task(node.commit(5, group="other"))
    await asyncio.sleep(0)
    syncing = asyncio.create_task(sync(node, joined.generation_id))
    await asyncio.sleep(0)
    assert not syncing.done()
    node.release()
    assert (await syncing).error_code == ErrorCode.NONE
    assert await committing is ErrorCode.NONE


async def test_a_join_that_is_not_committed_is_refused(node: Coordinated) -> None:
    node.hold()
    joining = asyncio.create_task(join(node))
    await asyncio.sleep(0)
    node.lose()
    assert (await joining).error_code == ErrorCode.NOT_COORDINATOR


async def test_a_sync_of_another_generation_is_refused_at_once(node: Coordinated) -> None:
    joined = await join(node)
    node.hold()
    refused = await code_of(sync(node, joined.generation_id + 1))
    assert refused is ErrorCode.ILLEGAL_GENERATION
