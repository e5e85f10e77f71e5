"""A bootstrap server may be a balancer: each request may have to reach another replica."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from kvorum.metadata.address import Address
from kvorum.node.clock import SystemClock
from kvorum.node.outbound.client_connection import ClientConnection
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft.network_channel import NetworkChannel
from kvorum.node.raft.peer_exchange import PeerResult
from kvorum.node.raft.settings import RaftSettings
from kvorum.raft import messages as core
from kvorum.raft.basics import Destination, ReplicaKey
from kvorum.raft.effects import Send
from kvorum.wire.messages.vote import VoteResponse
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

pytestmark = pytest.mark.asyncio
VOTE = core.VoteRequest(
    epoch=1, replica=ReplicaKey(1), voter=None, log_end=OffsetAndEpoch(0, 0), is_pre_vote=False
)


class Answering:
    """A connection to a node that answers."""

    def __init__(self) -> None:
        self.is_open = True

    def version_for(self, message: object) -> int:
        del message
        return 2

    async def request(self, *_: object, **__: object) -> VoteResponse:
        return VoteResponse()

    def abort(self) -> None:
        self.is_open = False

    async def close(self) -> None:
        self.is_open = False


class Counting(Outgoing):
    """Remembers every connection that was opened."""

    def __init__(self) -> None:
        self.opened: list[Answering] = []

    async def open(self, address: Address, *, client_id: str, timeout_ms: int) -> ClientConnection:
        del address, client_id, timeout_ms
        self.opened.append(Answering())
        return cast("ClientConnection", self.opened[-1])


@pytest.mark.parametrize(
    ("destination_id", "are_open"), [(-2, [False, False]), (-7, [False, False]), (2, [True])]
)
async def test_only_a_replica_keeps_its_connection_after_an_answer(
    tmp_path: Path, destination_id: int, are_open: list[bool]
) -> None:
    outgoing, results = Counting(), asyncio.Queue[PeerResult]()
    channel = NetworkChannel(
        RaftSettings(
            node_id=1,
            cluster_id="c",
            directory_id=b"\x01" * 16,
            directory=tmp_path,
            can_vote=True,
            controller_listener="CONTROLLER",
        ),
        clock=SystemClock(),
        outgoing=outgoing,
        on_result=lambda _, result: results.put_nowait(result),
    )
    for number in (1, 2):
        channel.send(Send(number, Destination(destination_id, "host", 9093), VOTE))
        await results.get()
    assert [one.is_open for one in outgoing.opened] == are_open
    await channel.close()
