"""A peer that does not permit a replica's requests: warnings, one in a while, and no end of it."""

import logging
from pathlib import Path
from typing import cast

import pytest
from tests.node.raft.one_channel import VOTE, channel_over
from tests.support.clocks import StandingClock

from kvorum.metadata.address import Address
from kvorum.node.events.log_event import INTERVAL_MS
from kvorum.node.outbound.client_connection import ClientConnection
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.raft import messages as core
from kvorum.raft.basics import Destination
from kvorum.raft.effects import Send
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.vote import VoteResponse

pytestmark = pytest.mark.asyncio


class Denying:
    """A connection to a node whose authorizer says no."""

    is_open = True

    def version_for(self, message: object) -> int:
        del message
        return 2

    async def request(self, *_: object, **__: object) -> VoteResponse:
        return VoteResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    async def close(self) -> None:
        pass


class OnlyDenying(Outgoing):
    """Every connection leads to a node that says no."""

    async def open(self, address: Address, *, client_id: str, timeout_ms: int) -> ClientConnection:
        del address, client_id, timeout_ms
        return cast("ClientConnection", Denying())


async def test_it_is_warned_of_more_than_once_and_not_at_every_try(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = StandingClock()
    links, results = channel_over(OnlyDenying(), tmp_path, clock=clock)

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
