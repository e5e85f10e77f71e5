"""Three voters over real sockets: elections, replication, failover, hand-over."""

import asyncio
import contextlib

from tests.node.raft.cluster import Lab, Replica, first_to_lead
from tests.support.waiting import PATIENCE_S

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
