"""Connections to other replicas: a request in, its response or failure out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from kvorum.node.client_connection import (
    ClientConnection,
    ClientConnectionError,
    ConnectionLostError,
    NobodyListensError,
    NoCommonVersionError,
)
from kvorum.node.raft.control_records import FetchedRecords, read_fetched
from kvorum.node.raft.peer_link import PeerLink, Purpose
from kvorum.node.raft.settings import Clock, RaftSettings
from kvorum.node.raft.translation import (
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    vote,
)
from kvorum.raft import messages as core
from kvorum.raft.effects import Send
from kvorum.wire.errors import WireError
from kvorum.wire.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from kvorum.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kvorum.wire.messages.vote import VoteRequest, VoteResponse


class PeerResult(NamedTuple):
    """What came of a request; the bytes in it stay with the shell."""

    response: core.Response | core.RequestFailed
    records: FetchedRecords | None = None
    snapshot_part: bytes = b""


class PeerLinks:
    """All connections of one replica to others; `on_result` hears of every request once."""

    def __init__(
        self, settings: RaftSettings, *, clock: Clock, on_result: Callable[[int, PeerResult], None]
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._on_result = on_result
        self._client_id = f"raft-client-{settings.node_id}"
        self._links: dict[tuple[int, Purpose], PeerLink] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, send: Send) -> None:
        """Send a request, connecting first if need be."""
        task = asyncio.create_task(self._exchange(send))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Close all connections; requests under way are dropped."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for link in self._links.values():
            await link.close()

    async def _exchange(self, send: Send) -> None:
        link = self._link_for(send)
        try:
            result = await self._ask(await link.connection(), send.request)
        except NoCommonVersionError as error:
            result = PeerResult(core.RequestFailed(str(error), lacks_version=True))
        except NobodyListensError as error:
            result = PeerResult(core.RequestFailed(str(error), is_peer_gone=True))
        except ConnectionLostError as error:
            is_gone = await link.is_peer_gone()
            result = PeerResult(core.RequestFailed(str(error), is_peer_gone=is_gone))
        except (ClientConnectionError, WireError) as error:
            result = PeerResult(core.RequestFailed(str(error)))
        self._on_result(send.number, result)

    def _link_for(self, send: Send) -> PeerLink:
        """Return the link for a request; one to an address that is not the peer's now is closed."""
        destination, purpose = send.destination, _purpose_of(send.request)
        link = self._links.get((destination.id, purpose))
        if link is not None and (link.host, link.port) == (destination.host, destination.port):
            return link
        if link is not None:
            link.abort()
        link = PeerLink(
            host=destination.host,
            port=destination.port,
            client_id=self._client_id,
            timeout_ms=self._timeout_ms,
            clock=self._clock,
        )
        self._links[destination.id, purpose] = link
        return link

    async def _ask(self, connection: ClientConnection, request: core.Request) -> PeerResult:
        """Send a request in the version that both sides have; read the response."""
        match request:
            case core.VoteRequest():
                return await self._ask_vote(connection, request)
            case core.BeginQuorumEpochRequest():
                return await self._ask_begin(connection, request)
            case core.EndQuorumEpochRequest():
                return await self._ask_end(connection, request)
            case core.FetchRequest():
                return await self._ask_fetch(connection, request)
            case core.FetchSnapshotRequest():
                return await self._ask_snapshot(connection, request)
            case core.DescribeQuorumRequest():
                raise TypeError("a replica describes the quorum, and never asks for it")

    @property
    def _timeout_ms(self) -> int:
        return self._settings.raft.request_timeout_ms

    @property
    def _listener_name(self) -> str:
        return self._settings.controller_listener

    async def _ask_vote(
        self, connection: ClientConnection, request: core.VoteRequest
    ) -> PeerResult:
        version = connection.version_for(VoteRequest)
        if request.is_pre_vote and version < vote.PRE_VOTE_VERSION:
            raise NoCommonVersionError("the peer does not know pre-votes")
        message = vote.write_request(request, cluster_id=self._settings.cluster_id)
        response = await connection.request(message, VoteResponse, timeout_ms=self._timeout_ms)
        return PeerResult(vote.read_response(response, listener_name=self._listener_name))

    async def _ask_begin(
        self, connection: ClientConnection, request: core.BeginQuorumEpochRequest
    ) -> PeerResult:
        message: BeginQuorumEpochRequest = begin_quorum_epoch.write_request(
            request, cluster_id=self._settings.cluster_id
        )
        response = await connection.request(
            message, BeginQuorumEpochResponse, timeout_ms=self._timeout_ms
        )
        return PeerResult(
            begin_quorum_epoch.read_response(response, listener_name=self._listener_name)
        )

    async def _ask_end(
        self, connection: ClientConnection, request: core.EndQuorumEpochRequest
    ) -> PeerResult:
        message = end_quorum_epoch.write_request(
            request,
            cluster_id=self._settings.cluster_id,
            version=connection.version_for(EndQuorumEpochRequest),
        )
        response = await connection.request(
            message, EndQuorumEpochResponse, timeout_ms=self._timeout_ms
        )
        return PeerResult(
            end_quorum_epoch.read_response(response, listener_name=self._listener_name)
        )

    async def _ask_fetch(
        self, connection: ClientConnection, request: core.FetchRequest
    ) -> PeerResult:
        version = connection.version_for(FetchRequest)
        if version < fetch.TOPIC_ID_VERSION:
            raise NoCommonVersionError("the peer does not know topics by their ids")
        message = fetch.write_request(
            request, cluster_id=self._settings.cluster_id, version=version
        )
        response = await connection.request(message, FetchResponse, timeout_ms=self._timeout_ms)
        partition = fetch.partition_of(response)
        data = memoryview(b"" if partition is None else partition.records or b"")
        records = read_fetched(data)
        return PeerResult(
            fetch.read_response(
                response, listener_name=self._listener_name, batches=records.batches
            ),
            records=records,
        )

    async def _ask_snapshot(
        self, connection: ClientConnection, request: core.FetchSnapshotRequest
    ) -> PeerResult:
        message: FetchSnapshotRequest = fetch_snapshot.write_request(
            request, cluster_id=self._settings.cluster_id
        )
        response = await connection.request(
            message, FetchSnapshotResponse, timeout_ms=self._timeout_ms
        )
        partition = fetch_snapshot.partition_of(response)
        part = b"" if partition is None else bytes(partition.unaligned_records or b"")
        return PeerResult(
            fetch_snapshot.read_response(response, listener_name=self._listener_name),
            snapshot_part=part,
        )


def _purpose_of(request: core.Request) -> Purpose:
    is_fetch = isinstance(request, core.FetchRequest | core.FetchSnapshotRequest)
    return Purpose.FETCHING if is_fetch else Purpose.ELECTING
