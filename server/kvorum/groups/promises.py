"""The answers that members of a classic group wait for."""

from dataclasses import dataclass, field
from typing import TypeAlias

from kvorum.coordinator.effects import Promise
from kvorum.wire.messages.join_group import JoinGroupResponse
from kvorum.wire.messages.sync_group import SyncGroupResponse

SyncPromise: TypeAlias = Promise[SyncGroupResponse]
"""The answer of a SyncGroup request; it may be replaced as a `JoinPromise` may."""


@dataclass(slots=True, eq=False)
class JoinPromise(Promise[JoinGroupResponse]):
    """The answer of a JoinGroup request of a `version`.

    As in Kafka, a promise that another request of the same member has replaced is never kept.
    """

    version: int = field(kw_only=True)
