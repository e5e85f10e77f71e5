"""The epochs of members, and the states of their reconciliation (MemberState)."""

from enum import IntEnum
from typing import Final

JOIN_EPOCH: Final = 0
"""The epoch of a member that joins, or joins again."""
LEAVE_EPOCH: Final = -1
"""The epoch of a member that leaves for good."""


class MemberState(IntEnum):
    """The state of a member's reconciliation, by its number in records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def of(cls, number: int) -> "MemberState":
        """Return the state with this number; UNKNOWN for one of a later release."""
        known = number in {cls.STABLE, cls.UNREVOKED_PARTITIONS, cls.UNRELEASED_PARTITIONS}
        return cls(number) if known else cls.UNKNOWN
