"""Outcomes of a proposal and the leader's reaction to each error code, and its own refusals."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from kvorum.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping


class LeaderRefusesError(Exception):
    """A refusal by the leader; `code` is the error code of the response."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """An accepted change; the fields are the state of the partition in force."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    recovery_state: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A refused change."""

    code: ErrorCode


Answer: TypeAlias = Accepted | Refused


@unique
class Reaction(Enum):
    """A leader's reaction to a refusal.

    GO_BACK: the change was certainly not made, so the committed ISR counts again. AWAIT_METADATA:
    the leader's metadata is out of date; the change stays in flight until the log has newer
    metadata. RETRY: send the proposal again.
    """

    GO_BACK = "go back"
    AWAIT_METADATA = "await metadata"
    RETRY = "retry"


REACTIONS: Final[Mapping[ErrorCode, Reaction]] = MappingProxyType(
    {
        # The controller knows this partition epoch and reports that it has not made the change; no
        # later controller can make it either.
        ErrorCode.INELIGIBLE_REPLICA: Reaction.GO_BACK,
        ErrorCode.OPERATION_NOT_ATTEMPTED: Reaction.GO_BACK,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.AWAIT_METADATA,
        ErrorCode.UNKNOWN_TOPIC_ID: Reaction.AWAIT_METADATA,
        ErrorCode.FENCED_LEADER_EPOCH: Reaction.AWAIT_METADATA,
        # An earlier attempt may have changed the epoch.
        ErrorCode.INVALID_UPDATE_VERSION: Reaction.AWAIT_METADATA,
        ErrorCode.INVALID_REQUEST: Reaction.AWAIT_METADATA,
        # The change was made, and it moved the leadership to another replica.
        ErrorCode.NEW_LEADER_ELECTED: Reaction.AWAIT_METADATA,
    }
)
"""The reaction to a refusal; RETRY for every code that is not here."""
