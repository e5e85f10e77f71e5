"""A network channel to peers that refuse, or to a balancer behind which others answer."""

import asyncio
import logging
from pathlib import Path
from typing import cast

import pytest
from tests.node.raft.cluster import static_settings
from tests.support.waiting import StandingClock

from kvorum.metadata.address import Address
from kvorum.node.clock import Clock, SystemClock
from kvorum.node.events.log_event import INTERVAL_MS
from kvorum.node.outbound.client_connection import ClientConnection
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft.network_channel import NetworkChannel
from kvorum.node.raft.peer_exchange import PeerResult
from kvorum.raft import messages as core
from kvorum.raft.basics import Destination, ReplicaKey
from kvorum.raft.effects import Send
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


@pytest.mark.parametrize(
    ("destination_id", "are_open"), [(-2, [False, False]), (-7, [False, False]), (2, [True])]
)
async def test_only_a_replica_keeps_its_connection_after_an_answer(
    tmp_path: Path, destination_id: int, are_open: list[bool]
) -> None:
    outgoing = PlayedOutgoing()
    channel, results = channel_over(outgoing, tmp_path, clock=SystemClock())
    for number in (1, 2):
        channel.send(Send(number, Destination(destination_id, "host", 9093), VOTE))
        await results.get()
    assert [one.is_open for one in outgoing.opened] == are_open
    await channel.close()


async def test_it_is_warned_of_more_than_once_and_not_at_every_try(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, outgoing = StandingClock(), PlayedOutgoing(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    links, results = channel_over(outgoing, tmp_path, clock=clock)

    async def ask() -> core.RequestFailed:
        links.send(Send(1, Destination(2, "host", 9093), VOTE))
        response = (await results.get()).response
        assert isinstance(response, core.RequestFailed)
        return response

    caplog.set_level(logging.WARNING)
    assert (await ask()).is_denied
    for _ in range(5):
        await ask()
    assert len(caplog.records) == 1
    clock.now_ms = INTERVAL_MS
    await ask()
    first, second = (record.getMessage() for record in caplog.records)
    assert "A peer does not permit this node's requests of the quorum" in first
    assert "peer=2 at=host:9093" in first
    assert "others=5" in second
    await links.close()
