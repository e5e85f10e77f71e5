"""A network channel whose connections are played, and a request to send over it."""

import asyncio
from pathlib import Path
from typing import cast

from tests.node.raft.cluster import static_settings

from kvorum.metadata.address import Address
from kvorum.node.clock import Clock
from kvorum.node.outbound.client_connection import ClientConnection
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft.network_channel import NetworkChannel
from kvorum.node.raft.peer_exchange import PeerResult
from kvorum.raft import messages as core
from kvorum.raft.basics import ReplicaKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.vote import VoteResponse
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

VOTE = core.VoteRequest(
    epoch=1, replica=ReplicaKey(1), voter=None, log_end=OffsetAndEpoch(0, 0), is_pre_vote=False
)


class PlayedConnection:
    """A connection to a node that gives every vote the same answer."""

    def __init__(self, error: ErrorCode) -> None:
        self.is_open = True
        self._error = error

    def version_for(self, message: object) -> int:
        del message
        return 2

    async def request(self, *_: object, **__: object) -> VoteResponse:
        return VoteResponse(error_code=self._error)

    def abort(self) -> None:
        self.is_open = False

    async def close(self) -> None:
        self.is_open = False


class PlayedOutgoing(Outgoing):
    """Remembers every connection that was opened."""

    def __init__(self, error: ErrorCode = ErrorCode.NONE) -> None:
        self.opened: list[PlayedConnection] = []
        self._error = error

    async def open(self, address: Address, *, client_id: str, timeout_ms: int) -> ClientConnection:
        del address, client_id, timeout_ms
        self.opened.append(PlayedConnection(self._error))
        return cast("ClientConnection", self.opened[-1])


def channel_over(
    outgoing: Outgoing, folder: Path, *, clock: Clock
) -> tuple[NetworkChannel, asyncio.Queue[PeerResult]]:
    """Return the channel of node 1, and the queue of its results."""
    results = asyncio.Queue[PeerResult]()
    channel = NetworkChannel(
        static_settings(folder),
        clock=clock,
        outgoing=outgoing,
        on_result=lambda _, result: results.put_nowait(result),
    )
    return channel, results
