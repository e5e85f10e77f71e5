"""A bootstrap server may be a balancer: each request may have to reach another replica."""

from pathlib import Path

import pytest
from tests.node.raft.one_channel import VOTE, PlayedOutgoing, channel_over

from kvorum.node.clock import SystemClock
from kvorum.raft.basics import Destination
from kvorum.raft.effects import Send


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
