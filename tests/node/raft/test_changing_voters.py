"""Voters come and go over sockets: growing, shrinking, lost disks, lost nodes, upgrades."""

import asyncio
import json
from contextlib import suppress

import pytest
from tests.node.raft.cluster import (
    CALM,
    CLUSTER_ID,
    JOINING,
    LISTENER,
    DynamicQuorum,
    Lab,
    Replica,
    eventually,
    key_of,
    keys_in,
    partition_in,
)

from kvorum.metadata.voters import VoterKey
from kvorum.node.clock import SystemClock
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from kvorum.wire.uuid_text import ZERO_UUID

NEW_DISK = bytes([77]) * 16


def keys(quorum: DynamicQuorum, *node_ids: int) -> set[tuple[int, bytes]]:
    return {key_of(quorum.replicas[node_id]) for node_id in node_ids}


@pytest.fixture
async def quorum(lab: Lab) -> DynamicQuorum:
    """Three voters that have committed something."""
    quorum = await DynamicQuorum.of(lab, 1, 2, 3, voters=(1, 2, 3))
    await quorum.start(1, 2, 3)
    await quorum.commit(b"first")
    return quorum


async def test_every_replica_knows_which_voters_are_committed(lab: Lab) -> None:
    """A voter does, and so does an observer; before anything is committed no node does."""
    quorum = await DynamicQuorum.of(lab, 1, 2, 3, voters=(1,))
    await quorum.start(3)
    assert quorum.replicas[3].node.committed_voters() is None
    await quorum.start(1, 2)
    assert (await quorum.add(2)).error_code == ErrorCode.NONE
    expected = frozenset(VoterKey(*key) for key in keys(quorum, 1, 2))

    async def is_known() -> bool:
        known = [replica.node.committed_voters() for replica in quorum.replicas.values()]
        return known == [expected] * 3

    await eventually(is_known)


async def test_voters_of_a_change_that_is_not_committed_are_not_known_as_committed(
    quorum: DynamicQuorum,
) -> None:
    leader = await quorum.leader()
    staying, leaving = (one for one in quorum.replicas.values() if one is not leader)
    await staying.stop()
    removal = asyncio.create_task(quorum.remove(key_of(leaving)))

    async def is_appended() -> bool:
        return leader.node.voter_ids() == frozenset({leader.node_id, staying.node_id})

    await eventually(is_appended)
    # One of two voters has it.
    assert leader.node.committed_voters() is None
    removal.cancel()
    with suppress(asyncio.CancelledError):
        await removal


async def test_one_becomes_five_and_then_three_without_the_first(lab: Lab) -> None:
    quorum = await DynamicQuorum.of(lab, 1, 2, 3, 4, 5, voters=(1,))
    await quorum.start(1, 2, 3, 4, 5)
    for node_id in (2, 3, 4, 5):
        assert (await quorum.add(node_id)).error_code == ErrorCode.NONE
        await quorum.commit(b"added %d" % node_id)
    assert await quorum.voters() == keys(quorum, 1, 2, 3, 4, 5)
    first = quorum.replicas[1]
    assert (await quorum.leader()) is first
    assert (await quorum.remove(key_of(first))).error_code == ErrorCode.NONE
    second = await quorum.leader(besides=1)
    assert first.listener.epochs_lost == first.listener.epochs_led
    await quorum.commit(b"without the first")
    assert key_of(first) in keys_in(await quorum.describe())[1], "it follows as an observer"
    rest = {2, 3, 4, 5}
    gone = next(node_id for node_id in rest if node_id != second.node_id)
    assert (await quorum.remove(key_of(quorum.replicas[gone]))).error_code == ErrorCode.NONE
    await quorum.commit(b"three")
    assert await quorum.voters() == keys(quorum, *(rest - {gone}))
    all_values = [replica.listener.values for replica in quorum.replicas.values()]
    assert all_values == [all_values[0]] * 5
    assert len(all_values[0]) == 6


async def test_three_that_were_five_survive_the_loss_of_one(quorum: DynamicQuorum) -> None:
    await quorum.join(4)
    assert (await quorum.remove(key_of(quorum.replicas[3]))).error_code == ErrorCode.NONE
    leader = await quorum.leader()
    await leader.stop()
    await quorum.leader(besides=leader.node_id)
    await quorum.commit(b"after")


async def test_a_lost_disk_is_replaced(quorum: DynamicQuorum) -> None:
    """The disk failure recovery of KIP-853, in the order that one entry per node allows."""
    failed = quorum.follower()
    old = key_of(failed)
    await failed.stop()
    quorum.wipe(failed.node_id, NEW_DISK)
    await failed.start()
    new = key_of(failed)
    await quorum.until_observed(new)
    assert await quorum.voters() == {*keys(quorum, 1, 2, 3) - {new}, old}
    assert (await quorum.add(failed.node_id)).error_code == ErrorCode.DUPLICATE_VOTER
    assert (await quorum.remove(old)).error_code == ErrorCode.NONE
    assert (await quorum.add(failed.node_id)).error_code == ErrorCode.NONE
    assert await quorum.voters() == keys(quorum, 1, 2, 3)
    await quorum.commit(b"recovered")
    # It counts: with it, the quorum does without another one.
    other = next(
        one for one in quorum.replicas.values() if one is not failed and not one.node.is_leader
    )
    await other.stop()
    await quorum.commit(b"with the new disk")


async def test_a_voter_with_a_new_disk_hears_from_the_leader_where_that_is(
    quorum: DynamicQuorum,
) -> None:
    failed = quorum.follower()
    await failed.stop()
    quorum.wipe(failed.node_id, NEW_DISK)
    failed.bootstrap_servers = ()
    await failed.start()
    await quorum.until_observed(key_of(failed))


async def test_a_disk_that_its_node_has_given_up_is_soon_no_replica_for_the_controller(
    quorum: DynamicQuorum,
) -> None:
    """DescribeQuorum has the former observer for five minutes, as Kafka's does."""
    leader = await quorum.leader()
    await quorum.make(4)
    await quorum.start(4)
    observer = quorum.replicas[4]
    old = key_of(observer)
    await quorum.until_observed(old)
    await observer.stop()
    quorum.wipe(4, NEW_DISK)
    await observer.start()
    await quorum.until_observed(key_of(observer))

    async def is_known_once() -> bool:
        known = leader.node.describe_quorum().replicas_of(4)
        return [(one.key.id, one.key.directory_id) for one in known] == [key_of(observer)]

    await eventually(is_known_once)
    await quorum.until_observed(old)


async def test_a_lost_node_is_replaced_by_another(quorum: DynamicQuorum) -> None:
    """The node failure recovery of KIP-853."""
    failed = quorum.follower()
    await failed.stop()
    await quorum.make(4)
    await quorum.start(4)
    await quorum.until_observed(key_of(quorum.replicas[4]))
    assert (await quorum.add(4)).error_code == ErrorCode.NONE
    assert await quorum.voters() == keys(quorum, 1, 2, 3, 4)
    assert (await quorum.remove(key_of(failed))).error_code == ErrorCode.NONE
    assert await quorum.voters() == keys(quorum, *{1, 2, 3, 4} - {failed.node_id})
    await quorum.commit(b"recovered")


@pytest.mark.slow
async def test_controllers_join_by_themselves(lab: Lab) -> None:
    quorum = await DynamicQuorum.of(lab, 1, 2, 3, voters=(1,))
    for replica in quorum.replicas.values():
        replica.config = JOINING
    await quorum.start(1, 2, 3)

    async def all_vote() -> bool:
        return await quorum.voters() == keys(quorum, 1, 2, 3)

    await eventually(all_vote)
    await quorum.commit(b"together")
    # A new disk takes the place of the old one, without anybody asking for it.
    replaced = quorum.replicas[3]
    await replaced.stop()
    quorum.wipe(3, NEW_DISK)
    await replaced.start()
    await eventually(all_vote)
    await quorum.commit(b"with the new disk")


@pytest.mark.slow
async def test_who_was_removed_does_not_join_again(quorum: DynamicQuorum) -> None:
    removed = quorum.follower()
    await removed.stop()
    removed.config = JOINING
    await removed.start()
    await quorum.commit(b"with it")
    assert (await quorum.remove(key_of(removed))).error_code == ErrorCode.NONE
    await quorum.commit(b"without it")
    clock = SystemClock()
    end = clock.monotonic_ms() + 4 * CALM.voter_update_ms
    while clock.monotonic_ms() < end:
        await quorum.commit(b"time passes")
        assert removed.node_id not in removed.node.voter_ids()


async def test_an_addition_need_not_wait_for_its_commit(quorum: DynamicQuorum) -> None:
    await quorum.make(4)
    await quorum.start(4)
    assert (await quorum.add(4, ack_when_committed=False)).error_code == ErrorCode.NONE
    await quorum.commit(b"after")
    assert await quorum.voters() == keys(quorum, 1, 2, 3, 4)


async def test_a_voter_that_moves_tells_the_leader(quorum: DynamicQuorum) -> None:
    moving = quorum.follower()
    await moving.stop()
    another = ("ANOTHER", "localhost", 1)
    moving.local_listeners = ((LISTENER, "localhost", moving.server.port), another)
    await moving.start()

    async def is_known() -> bool:
        return another in {
            (listener.name, listener.host, listener.port)
            for node in (await quorum.describe()).nodes
            for listener in node.listeners
            if node.node_id == moving.node_id
        }

    await eventually(is_known)
    await quorum.commit(b"moved")


async def test_a_leader_that_moved_says_so_when_it_leads_again(lab: Lab) -> None:
    quorum = await DynamicQuorum.of(lab, 1, voters=(1,))
    await quorum.start(1)
    await quorum.commit(b"first")
    one = quorum.replicas[1]
    await one.stop()
    one.local_listeners = ((LISTENER, "localhost", one.server.port),)
    await one.start()
    await quorum.commit(b"second")
    described = await quorum.describe()
    assert [listener.host for listener in described.nodes[0].listeners] == ["localhost"]


async def static_three(lab: Lab) -> DynamicQuorum:
    """Return a quorum of static voters, all of which have reported themselves to their leader."""
    quorum = DynamicQuorum(lab)
    quorum.replicas = {replica.node_id: replica for replica in await lab.voters(3)}
    for replica in quorum.replicas.values():
        replica.config = CALM
    await quorum.start(1, 2, 3)
    await quorum.commit(b"static")
    return quorum


async def upgrade(quorum: DynamicQuorum) -> Replica:
    leader = await quorum.leader()

    async def is_possible() -> bool:
        return leader.node.kraft_upgrade_problem(1) is None

    await eventually(is_possible)
    leader.node.upgrade_kraft_version(1, epoch=leader.node.epoch)
    await quorum.commit(b"upgraded")
    return leader


async def test_static_voters_become_recorded_ones(lab: Lab) -> None:
    quorum = await static_three(lab)
    voters = partition_in(await quorum.describe()).current_voters
    assert {one.replica_directory_id for one in voters} == {ZERO_UUID}
    refused = await quorum.remove(key_of(quorum.replicas[3]))
    assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION
    leader = await upgrade(quorum)
    assert {one.node.kraft_version for one in quorum.replicas.values()} == {1}
    assert await quorum.voters() == keys(quorum, 1, 2, 3)
    assert not keys_in(await quorum.describe())[1]
    # The next election is kept in the form that belongs to it.
    await leader.stop()
    second = await quorum.leader(besides=leader.node_id)
    state = json.loads((second.directory / "__cluster_metadata-0" / "quorum-state").read_text())
    assert state["data_version"] == 1
    await leader.start()
    await quorum.join(4)
    await quorum.commit(b"four")
    assert await quorum.voters() == keys(quorum, 1, 2, 3, 4)


async def test_the_log_counts_more_than_the_configuration_once_it_names_voters(lab: Lab) -> None:
    quorum = await static_three(lab)
    await upgrade(quorum)
    assert (await quorum.remove(key_of(quorum.replicas[3]))).error_code == ErrorCode.NONE
    for replica in quorum.replicas.values():
        await replica.stop()
    await quorum.start(1, 2, 3)
    await quorum.commit(b"restarted")
    assert await quorum.voters() == keys(quorum, 1, 2)


async def test_an_update_for_another_cluster_still_tells_who_leads(quorum: DynamicQuorum) -> None:
    leader = await quorum.leader()
    request = UpdateRaftVoterRequest(
        cluster_id="another",
        current_leader_epoch=leader.node.epoch,
        voter_id=2,
        voter_directory_id=bytes(15) + b"\1",
        listeners=[UpdateRaftVoterRequest.Listener(LISTENER, "127.0.0.1", 1)],
        k_raft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(0, 1),
    )
    answer = await quorum.ask(leader, request, UpdateRaftVoterResponse)
    assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    told = answer.current_leader
    assert (told.leader_id, told.leader_epoch) == (leader.node_id, leader.node.epoch)
    assert (told.host, told.port) == ("127.0.0.1", leader.server.port)
    request.cluster_id = CLUSTER_ID
    answer = await quorum.ask(leader, request, UpdateRaftVoterResponse)
    assert answer.error_code == ErrorCode.VOTER_NOT_FOUND


async def test_a_snapshot_keeps_the_voters_and_a_new_voter_takes_them_from_it(
    quorum: DynamicQuorum,
) -> None:
    assert (await quorum.remove(key_of(quorum.replicas[3]))).error_code == ErrorCode.NONE
    leader = await quorum.leader()
    await quorum.commit(b"second")
    end = leader.listener.next_offset
    assert await leader.snapshot(end, [b"everything"])
    await quorum.join(4)
    newcomer = quorum.replicas[4]
    assert newcomer.listener.snapshots == [end]
    assert newcomer.node.kraft_version == 1
    await newcomer.stop()
    await newcomer.start()
    await quorum.commit(b"third")
    assert newcomer.node.voter_ids() == {1, 2, 4}
