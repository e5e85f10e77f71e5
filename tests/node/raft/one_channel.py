"""A network channel whose connections are played, and a request to send over it."""

import asyncio
from pathlib import Path

from kvorum.node.clock import Clock
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft.network_channel import NetworkChannel
from kvorum.node.raft.peer_exchange import PeerResult
from kvorum.node.raft.settings import RaftSettings
from kvorum.raft import messages as core
from kvorum.raft.basics import ReplicaKey
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

VOTE = core.VoteRequest(
    epoch=1, replica=ReplicaKey(1), voter=None, log_end=OffsetAndEpoch(0, 0), is_pre_vote=False
)


def channel_over(
    outgoing: Outgoing, folder: Path, *, clock: Clock
) -> tuple[NetworkChannel, asyncio.Queue[PeerResult]]:
    """Return the channel of node 1, and the queue of its results."""
    results = asyncio.Queue[PeerResult]()
    settings = RaftSettings(
        node_id=1,
        cluster_id="c",
        directory_id=b"\x01" * 16,
        directory=folder,
        can_vote=True,
        controller_listener="CONTROLLER",
    )
    channel = NetworkChannel(
        settings,
        clock=clock,
        outgoing=outgoing,
        on_result=lambda _, result: results.put_nowait(result),
    )
    return channel, results
