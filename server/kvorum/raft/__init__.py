"""Raft as Kafka speaks it, without I/O: `RaftCore` and the values that go in and out of it."""

from kvorum.raft.config import RaftConfig
from kvorum.raft.core import RaftCore
from kvorum.raft.destination import Destination
from kvorum.raft.effects import Effect, Effects
from kvorum.raft.election_record import ElectionRecord
from kvorum.raft.endpoints import Endpoint, Endpoints
from kvorum.raft.errors import IllegalMoveError, KRaftVersionUpgradeError, NotLeaderError, RaftError
from kvorum.raft.log_view import LogView
from kvorum.raft.replica import Identity
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.voter import Voter
from kvorum.raft.voter_set import VoterSet
from kvorum.raft.voter_set_history import VoterSetHistory
from kvorum.wire.offset_and_epoch import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch
from kvorum.wire.valid_offset_and_epoch import EpochStart

__all__ = [
    "BOOTSTRAP_SNAPSHOT_ID",
    "Destination",
    "Effect",
    "Effects",
    "ElectionRecord",
    "Endpoint",
    "Endpoints",
    "EpochStart",
    "Identity",
    "IllegalMoveError",
    "KRaftVersionUpgradeError",
    "LogView",
    "NotLeaderError",
    "OffsetAndEpoch",
    "RaftConfig",
    "RaftCore",
    "RaftError",
    "ReplicaKey",
    "Voter",
    "VoterSet",
    "VoterSetHistory",
]
