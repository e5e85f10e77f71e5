"""A leader whose process ends is missed at once; a connection that only breaks means nothing."""

from dataclasses import replace

import pytest
from tests.node.raft.cluster import QUICK, Lab, QuorumServer, Replica, first_to_lead
from tests.node.raft.reconfiguring import has_value
from tests.support.waiting import PATIENCE_S, StandingClock

from kvorum.metadata.address import Address
from kvorum.node.clock import Clock, SystemClock
from kvorum.node.outbound.client_connection import (
    ClientConnection,
    ConnectFailedError,
    ConnectionLostError,
    NobodyListensError,
)
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft.peer_link import RECONNECT_BACKOFF_MS_MIN, PeerLink
from kvorum.wire.messages.vote import VoteRequest, VoteResponse

PATIENT = replace(QUICK, fetch_timeout_ms=int(1000 * PATIENCE_S * 3))
"""A node that waits for the fetch timeout has no leader before the test's own patience ends."""


async def start_patient_quorum(lab: Lab, count: int) -> tuple[Replica, list[Replica]]:
    """Return the leader and the others, all of which have what it committed."""
    replicas = await lab.voters(count)
    for replica in replicas:
        replica.config = PATIENT
        await replica.start()
    leader = await first_to_lead(replicas)
    await leader.commit(b"before")
    rest = [replica for replica in replicas if replica is not leader]
    for replica in rest:
        await has_value(replica, b"before")
    return leader, rest


@pytest.mark.parametrize("count", [3, 5])
async def test_the_others_do_not_wait_for_the_fetch_timeout(lab: Lab, count: int) -> None:
    leader, rest = await start_patient_quorum(lab, count)
    await leader.server.close()
    await leader.stop()
    successor = await first_to_lead(rest)
    await successor.commit(b"after")
    for replica in rest:
        await has_value(replica, b"after")


async def test_broken_connections_cause_no_election(lab: Lab) -> None:
    leader, rest = await start_patient_quorum(lab, 3)
    epoch = leader.node.epoch
    for number in range(5):
        await leader.server.break_connections()
        await leader.commit(b"%d" % number)
        for replica in rest:
            await has_value(replica, b"%d" % number)
    assert {replica.node.epoch for replica in (leader, *rest)} == {epoch}


def link_to(
    server: QuorumServer, *, host: str = "127.0.0.1", clock: Clock | None = None
) -> PeerLink:
    return PeerLink(
        address=Address(host, server.port),
        client_id="test",
        timeout_ms=int(1000 * PATIENCE_S),
        clock=clock or SystemClock(),
        outgoing=Outgoing(),
    )


async def until_lost(connection: ClientConnection) -> None:
    with pytest.raises(ConnectionLostError):
        await connection.request(VoteRequest(), VoteResponse, timeout_ms=int(1000 * PATIENCE_S))


async def test_a_peer_that_takes_connections_is_not_gone(lab: Lab) -> None:
    server = await lab.server()
    link = link_to(server)
    lost = await link.connection()
    await server.break_connections()
    await until_lost(lost)
    assert not await link.is_peer_gone()
    assert await link.connection() is not lost
    await link.close()


async def test_a_peer_that_refuses_connections_is_gone(lab: Lab) -> None:
    server = await lab.server()
    link = link_to(server)
    lost = await link.connection()
    await server.close()
    await until_lost(lost)
    assert await link.is_peer_gone()
    with pytest.raises(NobodyListensError):
        await link.connection()


async def test_a_host_with_several_addresses_refuses_only_if_all_do(lab: Lab) -> None:
    server = await lab.server()
    link = link_to(server, host="localhost")
    await link.connection()
    await link.close()
    await server.close()
    with pytest.raises(NobodyListensError):
        await link_to(server).connection()


async def test_the_next_try_comes_after_a_pause_and_then_works(lab: Lab) -> None:
    server = await lab.server()
    clock = StandingClock()
    link = link_to(server, clock=clock)
    port = server.port
    await server.close()
    with pytest.raises(NobodyListensError) as first:
        await link.connection()
    await server.listen(port)
    with pytest.raises(ConnectFailedError) as second:
        await link.connection()
    assert second.value is first.value
    clock.now_ms += RECONNECT_BACKOFF_MS_MIN
    assert (await link.connection()).is_open
    await link.close()


async def test_a_closed_link_asks_no_node_any_more(lab: Lab) -> None:
    server = await lab.server()
    link = link_to(server)
    lost = await link.connection()
    link.abort()
    await server.close()
    await until_lost(lost)
    assert not await link.is_peer_gone()
