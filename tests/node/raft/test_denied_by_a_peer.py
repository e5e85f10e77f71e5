"""A peer that does not permit a replica's requests: warnings, one in a while, and no end of it."""

import logging
from pathlib import Path

import pytest
from tests.node.raft.one_channel import VOTE, PlayedOutgoing, channel_over
from tests.support.clocks import StandingClock

from kvorum.node.events.log_event import INTERVAL_MS
from kvorum.raft import messages as core
from kvorum.raft.basics import Destination
from kvorum.raft.effects import Send
from kvorum.wire.error_codes import ErrorCode


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
