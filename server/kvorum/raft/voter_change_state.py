"""The one change of the voters that a leader may have under way."""

from dataclasses import dataclass
from typing import TypeAlias

from kvorum.raft.basics import Endpoints, ReplicaKey
from kvorum.raft.messages import UpdateRaftVoterRequest


@dataclass(slots=True, kw_only=True)
class AddVoterHandlerState:
    """A voter that is being added: it is asked for its kraft.versions, then written to the log.

    `record_offset` is the offset of the voter record, None before it is appended. Without
    `acks_when_committed` the response is sent when the record is appended, but the change stays
    under way until it is committed.
    """

    token: int
    key: ReplicaKey
    endpoints: Endpoints
    acks_when_committed: bool
    deadline: float
    record_offset: int | None = None
    is_answered: bool = False


@dataclass(slots=True, kw_only=True)
class RemoveVoterHandlerState:
    """A voter that is being removed by the record at `record_offset`."""

    token: int
    record_offset: int
    deadline: float


@dataclass(slots=True, kw_only=True)
class PendingUpdate:
    """A voter's update of its own entry, which is recorded once the voter has been probed."""

    token: int
    key: ReplicaKey
    request: UpdateRaftVoterRequest
    deadline: float


PendingChange: TypeAlias = AddVoterHandlerState | RemoveVoterHandlerState | PendingUpdate
