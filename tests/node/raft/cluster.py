"""Replicas with real directories and real sockets, all in the test's own event loop."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.support.fake_node import QUORUM_KEYS, FrameServer, all_versions
from tests.support.waiting import PATIENCE_S, wait_for_event

from kvorum.metadata.address import Address
from kvorum.node.event_loop import SystemClock
from kvorum.node.raft import (
    CommittedBatch,
    LoadedSnapshot,
    RaftNode,
    RaftSettings,
    RaftStoppedError,
)
from kvorum.raft import Destination, Endpoint
from kvorum.raft.config import RaftConfig
from kvorum.storage.files import FileSystem, RealFileSystem
from kvorum.storage.log.log_config import LogConfig
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import request_class
from kvorum.wire.headers import decode_request_frame, encode_response_frame, with_size
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.primitives import Message

CLUSTER_ID = "QP3oa5oOQxCSVFlV2ZtYOg"
LISTENER = "CONTROLLER"
QUICK = RaftConfig(
    election_timeout_ms=150, fetch_timeout_ms=400, request_timeout_ms=1000, shutdown_timeout_ms=1000
)


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
                response = await self.node.handle_request(
                    request, version=version, listener_name=LISTENER
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
        gained = self.listener.on_gained
        self.listener = RecordingListener(on_gained=gained)
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
        return await self.node.create_snapshot(
            end_offset=end_offset,
            epoch=self.node.epoch,
            last_contained_log_timestamp_ms=1_700_000_000_000,
            values=values,
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
