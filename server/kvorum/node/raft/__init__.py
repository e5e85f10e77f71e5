"""The driver of the consensus core: one replica of the metadata log, alive in an event loop."""

from __future__ import annotations

from kvorum.node.raft.errors import (
    NotLeaderError,
    ProposalTooLargeError,
    RaftNodeError,
    RaftStoppedError,
)
from kvorum.node.raft.listener import CommittedBatch, LoadedSnapshot, RaftListener
from kvorum.node.raft.raft_node import RaftNode
from kvorum.node.raft.settings import (
    Address,
    Clock,
    ListenerAddress,
    RaftSettings,
    StaticVoter,
)

__all__ = [
    "Address",
    "Clock",
    "CommittedBatch",
    "ListenerAddress",
    "LoadedSnapshot",
    "NotLeaderError",
    "ProposalTooLargeError",
    "RaftListener",
    "RaftNode",
    "RaftNodeError",
    "RaftSettings",
    "RaftStoppedError",
    "StaticVoter",
]
