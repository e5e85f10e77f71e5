"""A quorum whose voters are data: formed from one or several, asked over TCP to change."""

import shutil
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Self, TypeVar

from tests.node.raft.cluster import CLUSTER_ID, LISTENER, QUICK, Lab, Replica
from tests.support.waiting import wait_for_async

from kvorum.metadata.address import Address
from kvorum.node.outbound.client_connection import ClientConnection
from kvorum.node.raft.control_records import voters_record_of
from kvorum.raft import Endpoint, ReplicaKey, Voter, VoterSet
from kvorum.storage.metadata_log.bootstrap_checkpoint import write_bootstrap_snapshot
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.primitives import Message

CALM = replace(QUICK, election_timeout_ms=300, fetch_timeout_ms=1200, request_timeout_ms=2000)
"""So patient that a busy machine does not make for elections that a test does not expect."""

JOINING = replace(CALM, auto_join=True)
_Response = TypeVar("_Response", bound=Message)
Key = tuple[int, bytes]


def key_of(replica: Replica) -> Key:
    return replica.node_id, replica.directory_id or bytes([replica.node_id]) * 16


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is true that no callback reports: `condition` is named after it."""
    is_so: bool = await wait_for_async(condition, condition.__name__)
    assert is_so


async def has_value(replica: Replica, value: bytes) -> None:
    """Wait until a replica has heard of a committed record."""
    await replica.listener.until(lambda: value in replica.listener.values)


class DynamicQuorum:
    """Controllers by their ids; all of them know all addresses as bootstrap servers."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.replicas: dict[int, Replica] = {}

    async def make(self, *node_ids: int) -> None:
        """Make controllers with empty directories, not started."""
        for node_id in node_ids:
            server = await self.lab.server()
            folder = self.lab.folder / f"controller-{node_id}"
            self.replicas[node_id] = self.lab.add(Replica(node_id, folder, server, config=CALM))
        servers = tuple(Address("127.0.0.1", one.server.port) for one in self.replicas.values())
        for replica in self.replicas.values():
            replica.bootstrap_servers = servers

    def format(self, *voter_ids: int) -> None:
        """Let the directories of the first voters say who these are."""
        voters = VoterSet.of(
            Voter(
                ReplicaKey(*key_of(replica)),
                (Endpoint(LISTENER, "127.0.0.1", replica.server.port),),
                0,
                1,
            )
            for replica in map(self.replicas.__getitem__, voter_ids)
        )
        for voter_id in voter_ids:
            replica = self.replicas[voter_id]
            directory = replica.directory / "__cluster_metadata-0"
            directory.mkdir(parents=True)
            write_bootstrap_snapshot(
                directory,
                replica.files,
                kraft_version=1,
                voters=voters_record_of(voters),
                now_ms=int(time.time() * 1000),
            )

    @classmethod
    async def of(cls, lab: Lab, *node_ids: int, voters: tuple[int, ...]) -> Self:
        """Return controllers that are not started, and of which some are the first voters."""
        quorum = cls(lab)
        await quorum.make(*node_ids)
        quorum.format(*voters)
        return quorum

    async def join(self, node_id: int) -> None:
        """Make and start a controller, and have it added."""
        await self.make(node_id)
        await self.start(node_id)
        assert (await self.add(node_id)).error_code == ErrorCode.NONE

    def follower(self) -> Replica:
        return next(one for one in self.replicas.values() if not one.node.is_leader)

    async def start(self, *node_ids: int) -> None:
        for node_id in node_ids:
            await self.replicas[node_id].start()

    def wipe(self, node_id: int, directory_id: bytes) -> None:
        """Give a controller that is stopped an empty disk."""
        replica = self.replicas[node_id]
        shutil.rmtree(replica.directory)
        replica.directory_id = directory_id

    async def leader(self, *, besides: int | None = None) -> Replica:
        """Return the controller that leads, once one does and its first batch is committed."""
        found: list[Replica] = []

        async def is_there() -> bool:
            found[:] = [
                replica
                for node_id, replica in self.replicas.items()
                if node_id != besides and replica.has_started and not replica.node.is_stopped
                if replica.node.is_leader and replica.listener.epochs_led
            ]
            return bool(found)

        await eventually(is_there)
        return found[0]

    async def ask(self, replica: Replica, message: Message, kind: type[_Response]) -> _Response:
        connection = await ClientConnection.open(
            host="127.0.0.1", port=replica.server.port, client_id="test", timeout_ms=5000
        )
        try:
            return await connection.request(message, kind, timeout_ms=5000)
        finally:
            await connection.close()

    async def add(self, node_id: int, *, ack_when_committed: bool = True) -> AddRaftVoterResponse:
        """Ask the leader to add a controller, until that has caught up."""
        replica = self.replicas[node_id]
        request = AddRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            timeout_ms=1000,
            voter_id=node_id,
            voter_directory_id=key_of(replica)[1],
            listeners=[AddRaftVoterRequest.Listener(LISTENER, "127.0.0.1", replica.server.port)],
            ack_when_committed=ack_when_committed,
        )
        found: list[AddRaftVoterResponse] = []

        async def is_answered() -> bool:
            found[:] = [await self.ask(await self.leader(), request, AddRaftVoterResponse)]
            return found[0].error_code != ErrorCode.REQUEST_TIMED_OUT

        await eventually(is_answered)
        return found[0]

    async def remove(self, key: Key) -> RemoveRaftVoterResponse:
        request = RemoveRaftVoterRequest(CLUSTER_ID, *key)
        return await self.ask(await self.leader(), request, RemoveRaftVoterResponse)

    async def describe(self) -> DescribeQuorumResponse:
        partition = DescribeQuorumRequest.PartitionData(0)
        topic = DescribeQuorumRequest.TopicData("__cluster_metadata", [partition])
        request = DescribeQuorumRequest([topic])
        return await self.ask(await self.leader(), request, DescribeQuorumResponse)

    async def voters(self) -> set[Key]:
        return keys_in(await self.describe())[0]

    async def until_observed(self, key: Key) -> None:
        """Wait until the leader lists a replica as an observer that has fetched."""

        async def is_listed() -> bool:
            return key in keys_in(await self.describe())[1]

        await eventually(is_listed)

    async def commit(self, value: bytes) -> None:
        """Have the leader commit a record, and wait until everyone who runs has it."""
        leader = await self.leader()
        await leader.commit(value)
        for replica in self.replicas.values():
            if replica.has_started and not replica.node.is_stopped:
                await has_value(replica, value)


def keys_in(described: DescribeQuorumResponse) -> tuple[set[Key], set[Key]]:
    partition = partition_in(described)
    return (
        {(one.replica_id, one.replica_directory_id) for one in partition.current_voters},
        {(one.replica_id, one.replica_directory_id) for one in partition.observers},
    )


def partition_in(described: DescribeQuorumResponse) -> DescribeQuorumResponse.PartitionData:
    return described.topics[0].partitions[0]
