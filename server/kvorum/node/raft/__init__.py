"""The driver of the consensus core: one replica of the metadata log in an event loop."""

from kvorum.node.raft.errors import ProposalTooLargeError, RaftNodeError, RaftStoppedError
from kvorum.node.raft.listener import CommittedBatch, LoadedSnapshot, RaftListener
from kvorum.node.raft.raft_node import RaftNode
from kvorum.node.raft.settings import RaftSettings

__all__ = [
    "CommittedBatch",
    "LoadedSnapshot",
    "ProposalTooLargeError",
    "RaftListener",
    "RaftNode",
    "RaftNodeError",
    "RaftSettings",
    "RaftStoppedError",
]
