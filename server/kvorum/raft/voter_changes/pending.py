"""The one change of the voters that a leader may have under way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kvorum.raft.basics import Endpoints, ReplicaKey


@dataclass(slots=True, kw_only=True)
class PendingAdd:
    """A voter that is being added: asked for its kraft.versions first, then in the log.

    `record_offset` is where the log says so, None before. Without `acks_when_committed` the answer
    is given with the record, but the change stays under way until it is committed.
    """

    token: int
    key: ReplicaKey
    endpoints: Endpoints
    acks_when_committed: bool
    deadline: float
    record_offset: int | None = None
    is_answered: bool = False


@dataclass(slots=True, kw_only=True)
class PendingRemove:
    """A voter that is being removed by the record at `record_offset`."""

    token: int
    record_offset: int
    deadline: float


PendingChange: TypeAlias = PendingAdd | PendingRemove
