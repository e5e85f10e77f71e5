"""Replicas with real directories and sockets, in the test's own event loop, and quorums of them."""

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Self, TypeVar

from tests.support.fake_node import QUORUM_KEYS, FrameServer, all_versions
from tests.support.waiting import PATIENCE_S, wait_for_async, wait_for_event

from kvorum.metadata.address import Address
from kvorum.node.clock import SystemClock
from kvorum.node.outbound.client_connection import ClientConnection
from kvorum.node.raft import (
    CommittedBatch,
    LoadedSnapshot,
    RaftNode,
    RaftSettings,
    RaftStoppedError,
)
from kvorum.node.raft.control_records import voters_record_of
from kvorum.node.tasks import run
from kvorum.raft import Destination, Endpoint, ReplicaKey, Voter, VoterSet
from kvorum.raft.config import RaftConfig
from kvorum.storage.files import FileSystem, RealFileSystem
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.bootstrap_checkpoint import write_bootstrap_snapshot
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import request_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_request_frame, encode_response_frame, with_size
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.primitives import Message

CLUSTER_ID = "QP3oa5oOQxCSVFlV2ZtYOg"
LISTENER = "CONTROLLER"
QUICK = RaftConfig(
    election_timeout_ms=150, fetch_timeout_ms=400, request_timeout_ms=1000, shutdown_timeout_ms=1000
)
CALM = replace(QUICK, election_timeout_ms=300, fetch_timeout_ms=1200, request_timeout_ms=2000)
"""So patient that a busy machine does not make for elections that a test does not expect."""
JOINING = replace(CALM, auto_join=True)
_Response = TypeVar("_Response", bound=Message)
Key = tuple[int, bytes]


def static_settings(directory: Path, *, voter_count: int = 1) -> RaftSettings:
    """Return the settings of node 1, among voters that the configuration names."""
    voter_ids = range(1, voter_count + 1)
    return RaftSettings(
        node_id=1,
        cluster_id=CLUSTER_ID,
        directory_id=b"\x01" * 16,
        directory=directory,
        can_vote=True,
        controller_listener=LISTENER,
        local_listeners=(Endpoint(LISTENER, "host1", 9093),),
        static_voters=tuple(Destination(one, f"host{one}", 9093) for one in voter_ids),
    )


@dataclass
class RecordingListener:
    """Remembers everything it hears, and wakes who waits for something of it."""

    values: list[bytes] = field(default_factory=list[bytes])
    next_offset: int = 0
    epochs_led: list[int] = field(default_factory=list[int])
    epochs_lost: list[int] = field(default_factory=list[int])
    leaders: list[tuple[int | None, int]] = field(default_factory=list[tuple[int | None, int]])
    snapshots: list[int] = field(default_factory=list[int])
    failures: list[Exception] = field(default_factory=list[Exception])
    on_gained: Callable[[int], None] = lambda _: None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def on_snapshot(self, snapshot: LoadedSnapshot) -> None:
        self.values = [value for batch in snapshot.values for value in batch]
        self.next_offset = snapshot.end_offset
        self.snapshots.append(snapshot.end_offset)
        self._changed.set()

    def on_commit(self, batches: Sequence[CommittedBatch]) -> None:
        for batch in batches:
            assert batch.base_offset == self.next_offset
            assert batch.is_control or len(batch.values) == batch.last_offset + 1 - self.next_offset
            self.values += batch.values
            self.next_offset = batch.last_offset + 1
        self._changed.set()

    def on_leadership_gained(self, epoch: int) -> None:
        self.epochs_led.append(epoch)
        self.on_gained(epoch)
        self._changed.set()

    def on_leadership_lost(self, epoch: int) -> None:
        self.epochs_lost.append(epoch)
        self._changed.set()

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        self.leaders.append((leader_id, epoch))
        self._changed.set()

    def on_failure(self, error: Exception) -> None:
        self.failures.append(error)
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        await wait_for_event(
            self._changed, condition, "what is heard makes it so", otherwise=lambda: self
        )


class QuorumServer(FrameServer):
    """A socket that answers ApiVersions and hands the quorum's requests to a replica."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.node: RaftNode | None = None

    async def _answer(self, frame: bytes) -> bytes | None:
        header, body = decode_request_frame(frame)
        version = header.request_api_version
        request = request_class(header.request_api_key).decode(bytes(body), version)
        if isinstance(request, ApiVersionsRequest):
            response: Message = ApiVersionsResponse(
                api_keys=all_versions([ApiKey.API_VERSIONS, *QUORUM_KEYS]),
                supported_features=[ApiVersionsResponse.SupportedFeatureKey("kraft.version", 0, 1)],
            )
        elif self.node is None:
            return None
        else:
            try:
                response = await run(
                    self.node.handle_request(request, version=version, listener_name=LISTENER)
                )
            except RaftStoppedError:
                return None
        return with_size(
            encode_response_frame(response, version=version, correlation_id=header.correlation_id)
        )


@dataclass
class Replica:
    """One replica with its directory, its listener and its socket."""

    node_id: int
    directory: Path
    server: QuorumServer
    can_vote: bool = True
    config: RaftConfig = QUICK
    log: LogConfig = field(default_factory=LogConfig)
    files: FileSystem = field(default_factory=RealFileSystem)
    static_voters: tuple[Destination, ...] = ()
    bootstrap_servers: tuple[Address, ...] = ()
    listener: RecordingListener = field(default_factory=RecordingListener)
    directory_id: bytes | None = None
    local_listeners: tuple[tuple[str, str, int], ...] = ()
    has_started: bool = False
    node: RaftNode = field(init=False)

    async def start(self) -> None:
        """Start on what is in the directory; forget what was heard before."""
        self.listener = RecordingListener(on_gained=self.listener.on_gained)
        self.node = await RaftNode.open(
            self._settings(),
            listener=self.listener,
            files=self.files,
            clock=SystemClock(),
            random=Random(self.node_id),
        )
        await self.node.start()
        self.has_started = True
        self.server.node = self.node

    def _settings(self) -> RaftSettings:
        own = self.local_listeners or ((LISTENER, "127.0.0.1", self.server.port),)
        return RaftSettings(
            node_id=self.node_id,
            cluster_id=CLUSTER_ID,
            directory_id=self.directory_id or bytes([self.node_id]) * 16,
            directory=self.directory / "__cluster_metadata-0",
            can_vote=self.can_vote,
            controller_listener=LISTENER,
            local_listeners=tuple(Endpoint(*one) for one in own if self.can_vote),
            static_voters=self.static_voters,
            bootstrap_servers=self.bootstrap_servers,
            raft=self.config,
            log=self.log,
        )

    async def stop(self) -> None:
        """Close the replica as a node does that is shut down."""
        await self.node.close()

    async def lead(self) -> None:
        """Start, and wait until this replica leads."""
        await self.start()
        await self.until_leading()

    async def until_leading(self) -> None:
        """Wait until this replica leads, and the first batch of its epoch is committed."""
        await self.listener.until(lambda: self.node.is_leader and bool(self.listener.epochs_led))

    async def commit(self, *values: bytes) -> int:
        """Propose records to this leader and wait until they are committed."""
        last = self.node.propose(values, epoch=self.node.epoch)
        await self.listener.until(lambda: self.listener.next_offset > last)
        return last

    async def snapshot(self, end_offset: int, *values: list[bytes]) -> bool:
        """Have a snapshot written; return whether it is new."""
        return await run(
            self.node.create_snapshot(
                end_offset=end_offset,
                epoch=self.node.epoch,
                last_contained_log_timestamp_ms=1_700_000_000_000,
                values=values,
            )
        )


async def first_to_lead(replicas: Sequence[Replica]) -> Replica:
    """Return the replica that leads first, once the first batch of its epoch is committed."""
    async with asyncio.timeout(PATIENCE_S):
        waits = {asyncio.create_task(replica.until_leading()): replica for replica in replicas}
        done, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in pending:
            wait.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
    return waits[done.pop()]


class Lab:
    """Makes replicas and servers below one folder, and closes whatever is still open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._servers: list[QuorumServer] = []
        self._replicas: list[Replica] = []

    async def server(self) -> QuorumServer:
        server = QuorumServer()
        await server.listen()
        self._servers.append(server)
        return server

    async def voter(self, name: str = "voter", node_id: int = 1) -> Replica:
        """Return a replica that is the one static voter, not started."""
        server = await self.server()
        voters = (Destination(node_id, "127.0.0.1", server.port),)
        return self.add(Replica(node_id, self.folder / name, server, static_voters=voters))

    async def leading_voter(self) -> Replica:
        """Return a replica that is the one static voter, and leads."""
        replica = await self.voter()
        await replica.lead()
        return replica

    async def voters(self, count: int) -> list[Replica]:
        """Return the static voters of one quorum, not started."""
        servers = [await self.server() for _ in range(count)]
        voters = tuple(
            Destination(node_id, "127.0.0.1", server.port)
            for node_id, server in enumerate(servers, start=1)
        )
        return [
            self.add(
                Replica(voter.id, self.folder / f"voter-{voter.id}", server, static_voters=voters)
            )
            for voter, server in zip(voters, servers, strict=True)
        ]

    def observer(self, node_id: int, *servers: QuorumServer) -> Replica:
        """Return a replica that never votes and asks `servers` for the leader, not started."""
        return self.add(
            Replica(
                node_id,
                self.folder / f"observer-{node_id}",
                QuorumServer(),
                can_vote=False,
                bootstrap_servers=tuple(Address("127.0.0.1", one.port) for one in servers),
            )
        )

    async def close(self) -> None:
        for replica in self._replicas:
            if replica.has_started:
                await replica.stop()
        for server in self._servers:
            await server.close()

    def add(self, replica: Replica) -> Replica:
        self._replicas.append(replica)
        return replica


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
        await (await self.leader()).commit(value)
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
