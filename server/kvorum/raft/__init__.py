"""Raft as Kafka speaks it, without I/O: `RaftCore` and the values that go in and out of it."""

from __future__ import annotations

from kvorum.raft.basics import (
    BOOTSTRAP_SNAPSHOT_ID,
    Destination,
    ElectionRecord,
    Endpoint,
    Endpoints,
    OffsetAndEpoch,
    ReplicaKey,
)
from kvorum.raft.config import RaftConfig
from kvorum.raft.core import NotLeadingError, RaftCore
from kvorum.raft.effects import Effect, Effects
from kvorum.raft.log_view import EpochStart, LogView
from kvorum.raft.replica import Identity
from kvorum.raft.transitions import IllegalMoveError
from kvorum.raft.voter_changes.upgrading import KRaftVersionUpgradeError, StaleEpochError
from kvorum.raft.voter_history import VoterHistory
from kvorum.raft.voter_set import Voter, VoterSet

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
    "NotLeadingError",
    "OffsetAndEpoch",
    "RaftConfig",
    "RaftCore",
    "ReplicaKey",
    "StaleEpochError",
    "Voter",
    "VoterHistory",
    "VoterSet",
]
