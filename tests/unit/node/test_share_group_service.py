"""Requests about share groups: the states that their coordinator has share coordinators keep."""

from typing import Final

import pytest
from tests.support.share_persister import REFUSAL
from tests.unit.node.coordinated_groups import CONTEXT, code_of
from tests.unit.node.sharing_groups import ORDERS, PAYMENTS, Sharing

from kvorum.groups.offsets.store import TopicPartition
from kvorum.metadata.partition import Partitions
from kvorum.metadata.topics_image import TopicImage
from kvorum.node.coroutines import Promise, other_work
from kvorum.node.tasks import run
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from kvorum.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from kvorum.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequestTopic
from kvorum.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

UNKNOWN_TOPIC: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
UNAVAILABLE: Final = ErrorCode.COORDINATOR_NOT_AVAILABLE


async def turn(node: Sharing) -> None:
    await other_work(node.runtime)


@pytest.fixture
async def node() -> Sharing:
    """A broker that leads its partition, and whose metadata has both topics."""
    node = Sharing()
    await node.begin()
    return node


async def test_a_member_shares_partitions_once_their_state_is_initialized(node: Sharing) -> None:
    assert await node.heartbeat(0, ["orders"]) == (2, {})
    await node.until(lambda: bool(node.initialized()))
    assert node.persister.offsets == {("g", ORDERS, 0): -1, ("g", ORDERS, 1): -1}
    assert await node.heartbeat(2) == (3, {ORDERS: [0, 1]})


async def test_states_that_cannot_be_initialized_are_asked_for_again_with_a_heartbeat(
    node: Sharing,
) -> None:
    node.persister.refused[ORDERS, 1] = UNAVAILABLE
    epoch, _ = await node.heartbeat(0, ["orders"])
    await node.until(lambda: not node.is_waiting())
    assert not node.initialized()
    node.persister.refused.clear()
    await node.heartbeat(epoch)
    await node.until(lambda: bool(node.initialized()))
    assert node.initialized() == {ORDERS: frozenset({0, 1})}


async def test_new_partitions_of_a_known_topic_are_read_from_their_first_record(
    node: Sharing,
) -> None:
    epoch, _ = await node.heartbeat(0, ["orders"])
    await node.until(lambda: bool(node.initialized()))
    node.publish(TopicImage("orders", ORDERS, Partitions((node.registration,) * 3)))
    await node.heartbeat(epoch)
    await node.until(lambda: len(node.initialized()[ORDERS]) == 3)
    assert node.persister.offsets["g", ORDERS, 2] == 0


async def test_altered_offsets_begin_the_states_of_known_partitions_again(node: Sharing) -> None:
    altered = await node.alter("orders", "absent")
    codes = {one.topic_name: one.partitions[0].error_code for one in altered.responses}
    assert codes == {"orders": ErrorCode.NONE, "absent": UNKNOWN_TOPIC}
    assert node.persister.offsets == {("g", ORDERS, 0): 42}
    await node.until(lambda: bool(node.initialized()))
    assert node.states() == {"g": "Empty"}


async def test_an_offset_that_its_share_coordinator_refuses_is_answered_with_the_refusal(
    node: Sharing,
) -> None:
    node.persister.refused[ORDERS, 0] = UNAVAILABLE
    altered = await node.alter("orders", "payments")
    partitions = {one.topic_name: one.partitions[0] for one in altered.responses}
    refused = partitions["orders"]
    assert (refused.error_code, refused.error_message) == (UNAVAILABLE, REFUSAL)
    assert partitions["payments"].error_code == ErrorCode.NONE


async def test_offsets_of_topics_are_deleted_with_their_states(node: Sharing) -> None:
    await node.join_and_share()
    node.persister.refused[PAYMENTS, 1] = UNAVAILABLE
    assert await node.delete("orders", "payments", "absent") == {
        "orders": (ErrorCode.NONE, None),
        "payments": (UNAVAILABLE, UNAVAILABLE.default_message),
        "absent": (UNKNOWN_TOPIC, UNKNOWN_TOPIC.default_message),
    }
    assert {topic_id for _, topic_id, _ in node.persister.offsets} == {PAYMENTS}
    assert await node.delete("orders") == {
        "orders": (UNKNOWN_TOPIC, "There is no offset information to delete.")
    }
    node.persister.refused.clear()
    assert await node.delete("payments") == {"payments": (ErrorCode.NONE, None)}


@pytest.mark.parametrize("group_id", ["g", ""])
async def test_only_a_group_without_members_has_its_offsets_changed(
    node: Sharing, group_id: str
) -> None:
    await node.heartbeat(0, ["orders"])
    code = ErrorCode.NON_EMPTY_GROUP if group_id else ErrorCode.INVALID_GROUP_ID
    alter = node.share.alter_offsets(AlterShareGroupOffsetsRequest(group_id))
    delete = node.share.delete_offsets(DeleteShareGroupOffsetsRequest(group_id))
    assert await code_of(run(alter)) is code
    assert await code_of(run(delete)) is code


async def test_a_share_group_is_deleted_once_its_states_are(node: Sharing) -> None:
    await node.join_and_share()
    await node.heartbeat(0, ["orders"], group_id="busy")
    await node.commit(1, group="classic")
    node.persister.refused[ORDERS, 0] = UNAVAILABLE
    ids = ["g", "busy", "classic", "absent"]
    deleted = {one.group_id: one.error_code for one in await run(node.share.delete_groups(ids))}
    assert deleted == {
        "g": UNAVAILABLE,
        "busy": ErrorCode.NON_EMPTY_GROUP,
        "classic": ErrorCode.NONE,
        "absent": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    node.persister.refused.clear()
    (again,) = await run(node.share.delete_groups(["g"]))
    assert again.error_code == ErrorCode.NONE
    assert {group_id for group_id, _, _ in node.persister.offsets} == {"busy"}
    assert node.states() == {"busy": "Stable"}


async def test_a_broker_that_does_not_coordinate_a_group_does_not_delete_it(node: Sharing) -> None:
    node.lose()
    (result,) = await run(node.share.delete_groups(["g"]))
    assert result.error_code == ErrorCode.NOT_COORDINATOR


async def test_the_state_of_a_topic_ends_with_it(node: Sharing) -> None:
    await node.join_and_share()
    node.publish(without="orders")
    await node.until(lambda: ORDERS not in node.initialized())
    assert node.initialized() == {PAYMENTS: frozenset({0, 1})}


async def test_offsets_are_described_with_the_records_that_are_left(node: Sharing) -> None:
    await node.alter("orders")
    await node.until(lambda: bool(node.initialized()))
    node.persister.delivery_complete_count = 3
    (topic,) = (await node.describe()).topics
    assert (topic.topic_name, topic.topic_id) == ("orders", ORDERS)
    (partition,) = topic.partitions
    assert (partition.start_offset, partition.leader_epoch, partition.lag) == (42, 3, 55)
    node.ends.errors[TopicPartition("orders", 0)] = ErrorCode.LEADER_NOT_AVAILABLE
    (partition,) = (await node.describe()).topics[0].partitions
    assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE


async def test_named_partitions_without_a_state_have_no_offset(node: Sharing) -> None:
    node.persister.refused[ORDERS, 1] = UNAVAILABLE
    asked = [DescribeShareGroupOffsetsRequestTopic(name, [0, 1]) for name in ("absent", "orders")]
    described = (await node.describe(asked)).topics
    found = {
        topic.topic_name: [
            (one.start_offset, one.leader_epoch, one.lag) for one in topic.partitions
        ]
        for topic in described
    }
    assert found == {"orders": [(-1, 3, -1), (-1, 0, -1)], "absent": [(-1, 0, -1)] * 2}


async def test_all_offsets_are_asked_for_where_the_group_is_coordinated(node: Sharing) -> None:
    node.lose()
    assert await code_of(node.describe()) is ErrorCode.NOT_COORDINATOR
    asked = [DescribeShareGroupOffsetsRequestTopic("orders", [0])]
    assert (await node.describe(asked)).topics[0].partitions[0].start_offset == -1


async def test_a_group_that_is_not_here_is_described_by_an_error(node: Sharing) -> None:
    node.lose()
    codes = {one: node.share.describe_group(one).error_code for one in ("g", "")}
    assert codes == {"g": ErrorCode.NOT_COORDINATOR, "": ErrorCode.INVALID_GROUP_ID}


async def test_states_are_not_initialized_after_the_service_is_closed(node: Sharing) -> None:
    held = node.persister.held = Promise(node.runtime)
    await node.heartbeat(0, ["orders"])
    node.share.close()
    node.service.close()
    held.settle(None)
    refused = node.share.heartbeat(CONTEXT, ShareGroupHeartbeatRequest("g", "m", 1))
    assert await code_of(run(refused)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    for _ in range(3):
        await run(turn(node))
    assert not node.persister.offsets
    assert node.ends.is_closed
