"""The connection to the leader of one epoch: one at a time, and a new one for another leader."""

import pytest
from tests.support.fake_node import FakeNode
from tests.support.frame_server import HOST

from kvorum.metadata.address import Address
from kvorum.node.controller.quorum_reassignment_proxy import LeaderConnection
from kvorum.node.outbound.client_connection import ClientConnectionError
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

TIMEOUT_MS = 5000


def connection() -> LeaderConnection:
    return LeaderConnection(client_id="1", timeout_ms=TIMEOUT_MS, outgoing=Outgoing())


async def ask(leader: LeaderConnection, node: FakeNode, *, epoch: int) -> None:
    """Ask the leader of an epoch, as a node that knows its address."""
    await leader.open(Address(HOST, node.port), epoch=epoch)
    await leader.request(DescribeClusterRequest(endpoint_type=2), DescribeClusterResponse)


async def test_requests_in_one_epoch_share_a_connection() -> None:
    leader = connection()
    async with FakeNode() as node:
        for _ in range(3):
            await ask(leader, node, epoch=1)
        assert (node.times_asked("DescribeCluster"), node.connection_count) == (3, 1)
        leader.close()
        await node.wait_until_left()


async def test_the_leader_of_another_epoch_gets_a_connection_and_the_one_before_loses_it() -> None:
    leader = connection()
    async with FakeNode() as before, FakeNode() as after:
        await ask(leader, before, epoch=1)
        await ask(leader, after, epoch=2)
        assert (before.times_asked("DescribeCluster"), after.times_asked("DescribeCluster")) == (
            1, 1,
        )  # fmt: skip
        await before.wait_until_left()
        assert after.connection_count == 1
        leader.close()
        await after.wait_until_left()


async def test_after_a_failure_there_is_a_new_connection() -> None:
    leader = connection()
    async with FakeNode() as node:
        await ask(leader, node, epoch=1)
        node.answer("DescribeCluster", lambda _: None)
        with pytest.raises(ClientConnectionError):
            await ask(leader, node, epoch=1)
        node.answer("DescribeCluster", lambda _: node.described_cluster())
        await ask(leader, node, epoch=1)
        leader.close()
        await node.wait_until_left()


async def test_without_a_connection_nothing_is_sent() -> None:
    with pytest.raises(ClientConnectionError, match="no connection"):
        await connection().request(DescribeClusterRequest(), DescribeClusterResponse)
