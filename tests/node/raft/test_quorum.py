"""Voters and observers over real sockets: elections, replication, failover, leaders that die."""

import asyncio
import contextlib
import shutil
from dataclasses import replace

import pytest
from tests.node.raft.cluster import (
    CALM,
    QUICK,
    Lab,
    QuorumServer,
    Replica,
    first_to_lead,
    has_value,
)
from tests.support.waiting import PATIENCE_S, StandingClock, let_others_run, wait_for_async

from kvorum.metadata.address import Address
from kvorum.node.clock import Clock, SystemClock
from kvorum.node.outbound.client_connection import (
    ClientConnection,
    ConnectFailedError,
    ConnectionLostError,
    NobodyListensError,
)
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft import RaftStoppedError
from kvorum.node.raft.network_channel import RECONNECT_BACKOFF_MS_MIN, PeerLink
from kvorum.raft import NotLeaderError
from kvorum.wire.messages.vote import VoteRequest, VoteResponse

PATIENT = replace(QUICK, fetch_timeout_ms=int(1000 * PATIENCE_S * 3))
"""A node that waits for the fetch timeout has no leader before the test's own patience ends."""


async def start_quorum(lab: Lab) -> list[Replica]:
    replicas = await lab.voters(3)
    for replica in replicas:
        await replica.start()
    return replicas


async def commit_somewhere(replicas: list[Replica], value: bytes) -> Replica:
    """Commit a value with the present leader, trying again while leaders change."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            leader = await first_to_lead(replicas)
            with contextlib.suppress(NotLeaderError, RaftStoppedError, TimeoutError):
                await leader.commit(value)
                return leader


async def until_all_have(replicas: list[Replica], values: list[bytes]) -> None:
    for replica in replicas:
        await until_it_has(replica, values)


async def until_it_has(replica: Replica, values: list[bytes]) -> None:
    await replica.listener.until(lambda: replica.listener.values == values)


async def test_three_voters_elect_one_and_replicate(lab: Lab) -> None:
    replicas = await start_quorum(lab)
    leader = await first_to_lead(replicas)
    for round_number in range(10):
        await leader.commit(b"%d" % round_number)
    await until_all_have(replicas, [b"%d" % i for i in range(10)])
    assert len({replica.node.leader_id for replica in replicas}) == 1


async def test_the_others_go_on_when_the_leader_dies(lab: Lab) -> None:
    replicas = await start_quorum(lab)
    leader = await commit_somewhere(replicas, b"one")
    await until_all_have(replicas, [b"one"])
    await leader.stop()
    rest = [replica for replica in replicas if replica is not leader]
    await commit_somewhere(rest, b"two")
    await until_all_have(rest, [b"one", b"two"])
    await leader.start()
    await until_all_have(replicas, [b"one", b"two"])


async def test_a_leader_that_is_closed_hands_over_quickly(lab: Lab) -> None:
    replicas = await start_quorum(lab)
    leader = await commit_somewhere(replicas, b"one")
    await until_all_have(replicas, [b"one"])
    rest = [replica for replica in replicas if replica is not leader]
    await leader.stop()
    # It only returns when another node has begun an epoch.
    assert max(replica.node.epoch for replica in rest) > leader.listener.epochs_led[-1]


async def test_a_leader_without_successor_waits_for_one_only_as_long_as_it_may(lab: Lab) -> None:
    replicas = await lab.voters(3)
    for replica in replicas:
        replica.config = replace(CALM, shutdown_timeout_ms=int(10_000 * PATIENCE_S))
        await replica.start()
    leader = await commit_somewhere(replicas, b"one")
    for replica in replicas:
        if replica is not leader:
            await replica.server.close()
    closing = asyncio.create_task(leader.node.close())
    await let_others_run()
    assert not closing.done()
    leader.node.end_waits()
    async with asyncio.timeout(PATIENCE_S):
        await closing


async def test_two_of_three_are_enough_and_one_is_not(lab: Lab) -> None:
    replicas = await lab.voters(3)
    await replicas[0].start()
    await replicas[1].start()
    leader = await commit_somewhere(replicas[:2], b"one")
    other = replicas[1] if leader is replicas[0] else replicas[0]
    await until_all_have([other], [b"one"])
    await other.stop()
    await leader.listener.until(lambda: bool(leader.listener.epochs_lost))
    assert leader.listener.values == [b"one"]
    await replicas[2].start()
    await commit_somewhere([leader, replicas[2]], b"two")
    await until_all_have([leader, replicas[2]], [b"one", b"two"])


async def test_an_observer_follows_through_a_change_of_leader(lab: Lab) -> None:
    replicas = await start_quorum(lab)
    observer = lab.observer(9, *(replica.server for replica in replicas))
    await observer.start()
    leader = await commit_somewhere(replicas, b"one")
    await until_all_have([observer], [b"one"])
    await leader.stop()
    await commit_somewhere([replica for replica in replicas if replica is not leader], b"two")
    await until_all_have([observer], [b"one", b"two"])


async def until_same(observer: Replica, leader: Replica) -> None:
    await observer.listener.until(
        lambda: observer.listener.next_offset >= leader.listener.next_offset
    )
    assert observer.listener.values == leader.listener.values


@pytest.fixture
async def leader(lab: Lab) -> Replica:
    """A lone voter that leads."""
    return await lab.leading_voter()


async def test_it_finds_the_leader_and_follows(leader: Replica, lab: Lab) -> None:
    await leader.commit(b"before")
    observer = lab.observer(7, leader.server)
    await observer.start()
    await until_same(observer, leader)
    assert observer.node.leader_id == 1
    assert observer.node.leader_endpoint() is not None
    for round_number in range(20):
        await leader.commit(b"%d" % round_number)
        await until_same(observer, leader)
    assert observer.listener.leaders[-1] == (1, 1)


async def test_a_dead_bootstrap_server_does_not_hold_it_up(leader: Replica, lab: Lab) -> None:
    dead = await lab.server()
    await dead.close()
    observer = lab.observer(7, dead, leader.server)
    await observer.start()
    await until_same(observer, leader)


async def test_it_waits_for_a_leader_that_comes_later(lab: Lab) -> None:
    leader = await lab.voter()
    observer = lab.observer(7, leader.server)
    await observer.start()
    await leader.lead()
    await until_same(observer, leader)


async def test_it_goes_on_after_the_leaders_restart_and_after_its_own(lab: Lab) -> None:
    leader = await lab.leading_voter()
    observer = lab.observer(7, leader.server)
    await observer.start()
    await leader.commit(b"one")
    await until_same(observer, leader)
    await leader.stop()
    await leader.lead()
    await leader.commit(b"two")
    await until_same(observer, leader)
    assert observer.node.epoch == 2
    await observer.stop()
    await leader.commit(b"three")
    await observer.start()
    await until_same(observer, leader)
    assert observer.listener.values == [b"one", b"two", b"three"]


async def test_it_fetches_a_snapshot_where_the_log_is_gone(leader: Replica, lab: Lab) -> None:
    values = [b"%05d" % i * 150 for i in range(3000)]
    last = await leader.commit(*values)
    chunks = [values[start : start + 1024] for start in range(0, len(values), 1024)]
    assert await leader.snapshot(last + 1, *chunks)
    await leader.commit(b"behind it")
    observer = lab.observer(7, leader.server)
    await observer.start()
    await until_same(observer, leader)
    assert observer.listener.snapshots == [last + 1]
    assert len(observer.listener.values) == 3001
    await observer.stop()
    await observer.start()
    await until_same(observer, leader)
    assert observer.listener.values == [*values, b"behind it"]


async def test_a_tail_that_the_leader_lost_is_truncated(leader: Replica, lab: Lab) -> None:
    await leader.commit(b"kept")
    await leader.stop()
    shutil.copytree(leader.directory, lab.folder / "before")
    await leader.lead()
    observer = lab.observer(7, leader.server)
    await observer.start()
    await leader.commit(b"lost")
    await until_same(observer, leader)
    await observer.stop()
    await leader.stop()
    # The leader loses its disk's last writes: epoch 2 with all that was in it.
    shutil.rmtree(leader.directory)
    shutil.copytree(lab.folder / "before", leader.directory)
    await leader.lead()
    await leader.stop()
    await leader.lead()
    await leader.commit(b"new")
    await observer.start()
    await until_same(observer, leader)
    assert observer.listener.values == [b"kept", b"new"]


async def test_many_observers_see_the_same(leader: Replica, lab: Lab) -> None:
    observers = [lab.observer(10 + i, leader.server) for i in range(5)]
    for observer in observers:
        await observer.start()
    for round_number in range(50):
        leader.node.propose([b"%d" % round_number], epoch=1)
    await leader.commit(b"end")
    for observer in observers:
        await until_same(observer, leader)


async def test_a_damaged_snapshot_is_refused_and_asked_for_again(
    leader: Replica, lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    last = await leader.commit(b"a", b"b")
    assert await leader.snapshot(last + 1, [b"a", b"b"])
    (file,) = leader.directory.glob("*/*.checkpoint")
    sound = file.read_bytes()
    file.chmod(0o600)
    file.write_bytes(sound[:-20] + b"?" * 20)
    observer = lab.observer(7, leader.server)
    await observer.start()
    await wait_for_async(lambda: "leader's snapshot" in caplog.text, "there is a warning")
    assert observer.listener.snapshots == []
    assert not observer.node.is_stopped
    file.write_bytes(sound)
    await until_same(observer, leader)
    assert observer.listener.snapshots == [last + 1]


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
    await (await first_to_lead(rest)).commit(b"after")
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
