"""The differences between the versions of JoinGroup, for groups of either protocol."""

from typing import Final

from kvorum.wire.messages.join_group import JoinGroupRequest

UNKNOWN_MEMBER_ID: Final = ""
"""The id of a member that has none yet."""
_FIRST_VERSION_WITH_REBALANCE_TIMEOUT: Final = 1
_FIRST_VERSION_WITH_MEMBER_ID_REQUIRED: Final = 4


def rebalance_timeout_ms(version: int, request: JoinGroupRequest) -> int:
    """Return the time that a member has for a rebalance; in the first version, its session."""
    if version < _FIRST_VERSION_WITH_REBALANCE_TIMEOUT:
        return request.session_timeout_ms
    return request.rebalance_timeout_ms


def needs_member_id(version: int, request: JoinGroupRequest) -> bool:
    """Return whether a member has to join again under an id that it gets (KIP-394).

    Static members have an id of their own, by which they are found again.
    """
    is_dynamic = request.group_instance_id is None
    is_new = request.member_id == UNKNOWN_MEMBER_ID
    return is_new and is_dynamic and version >= _FIRST_VERSION_WITH_MEMBER_ID_REQUIRED
