"""Observers over real sockets: finding the leader, following, snapshots, logs that diverge."""

import shutil

import pytest
from tests.node.raft.cluster import Lab, Replica
from tests.support.waiting import wait_for_async


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
