"""Voters and observers over real sockets: elections, replication, failover, logs that diverge."""

import asyncio
import contextlib
import shutil

import pytest
from tests.node.raft.cluster import Lab, Replica, first_to_lead
from tests.support.waiting import PATIENCE_S, wait_for_async

from kvorum.node.raft import RaftStoppedError
from kvorum.raft import NotLeaderError


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
