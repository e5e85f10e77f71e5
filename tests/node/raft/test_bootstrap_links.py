"""A bootstrap server may be a balancer: each request may have to reach another replica."""

from pathlib import Path
from typing import cast

import pytest
from tests.node.raft.one_channel import VOTE, channel_over

from kvorum.metadata.address import Address
from kvorum.node.clock import SystemClock
from kvorum.node.outbound.client_connection import ClientConnection
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.raft.basics import Destination
from kvorum.raft.effects import Send
from kvorum.wire.messages.vote import VoteResponse

pytestmark = pytest.mark.asyncio


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
    outgoing = Counting()
    channel, results = channel_over(outgoing, tmp_path, clock=SystemClock())
    for number in (1, 2):
        channel.send(Send(number, Destination(destination_id, "host", 9093), VOTE))
        await results.get()
    assert [one.is_open for one in outgoing.opened] == are_open
    await channel.close()
