"""What follows from the controller's answer about one partition."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from kvorum.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The state of the partition after the change, or as it was already."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    recovery_state: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The change was refused."""

    code: ErrorCode


Answer: TypeAlias = Accepted | Refused


@unique
class Reaction(Enum):
    """What a leader does about a refusal.

    GO_BACK: the change was certainly not made, so the committed ISR counts again. AWAIT_METADATA:
    what the leader knows is out of date; the change stays under way until the log tells more.
    RETRY: ask again.
    """

    GO_BACK = "go back"
    AWAIT_METADATA = "await metadata"
    RETRY = "retry"


REACTIONS: Final[Mapping[ErrorCode, Reaction]] = MappingProxyType(
    {
        # The controller knows this partition epoch and tells that it has not made the change; no
        # controller after it can make it then either.
        ErrorCode.INELIGIBLE_REPLICA: Reaction.GO_BACK,
        ErrorCode.OPERATION_NOT_ATTEMPTED: Reaction.GO_BACK,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.AWAIT_METADATA,
        ErrorCode.UNKNOWN_TOPIC_ID: Reaction.AWAIT_METADATA,
        ErrorCode.FENCED_LEADER_EPOCH: Reaction.AWAIT_METADATA,
        # An earlier try may have been the one that changed the epoch.
        ErrorCode.INVALID_UPDATE_VERSION: Reaction.AWAIT_METADATA,
        ErrorCode.INVALID_REQUEST: Reaction.AWAIT_METADATA,
        # The change was made, and took the leadership from here.
        ErrorCode.NEW_LEADER_ELECTED: Reaction.AWAIT_METADATA,
    }
)


def reaction_to(code: ErrorCode) -> Reaction:
    """Return what to do about a refusal; whatever has no rule of its own is tried again."""
    return REACTIONS.get(code, Reaction.RETRY)
