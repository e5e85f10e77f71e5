"""The timeouts of groups, and the keys of their timers."""

from collections.abc import Callable, Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemberHeartbeat:
    """A member of a classic group has not been heard of for its session."""

    group_id: str
    member_id: str

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return heartbeat_key(self.group_id, self.member_id)


@dataclass(frozen=True, slots=True)
class JoinPhase:
    """The members of a classic group have had their time to join."""

    group_id: str

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return join_key(self.group_id)


@dataclass(frozen=True, slots=True)
class InitialJoinPhase:
    """The delay of a first rebalance is over; it may be extended by what remains."""

    group_id: str
    delay_ms: int
    remaining_ms: int

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return join_key(self.group_id)


@dataclass(frozen=True, slots=True)
class SyncPhase:
    """The members of a generation have had their time to sync."""

    group_id: str
    generation_id: int

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return sync_key(self.group_id)


@dataclass(frozen=True, slots=True)
class MemberSession:
    """A member of a consumer group has not been heard of for its session."""

    group_id: str
    member_id: str

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return session_timeout_key(self.group_id, self.member_id)


@dataclass(frozen=True, slots=True)
class ShareMemberSession:
    """A member of a share group has not been heard of for its session."""

    group_id: str
    member_id: str

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return session_timeout_key(self.group_id, self.member_id)


@dataclass(frozen=True, slots=True)
class MemberRebalance:
    """A member of a consumer group has had its time to give up partitions at an epoch."""

    group_id: str
    member_id: str
    member_epoch: int

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return rebalance_timeout_key(self.group_id, self.member_id)


@dataclass(frozen=True, slots=True)
class ClassicMemberJoin:
    """A classic member of a consumer group has had its time to join again."""

    group_id: str
    member_id: str

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return member_join_key(self.group_id, self.member_id)


@dataclass(frozen=True, slots=True)
class ClassicMemberSync:
    """A classic member of a consumer group has had its time to sync after a join."""

    group_id: str
    member_id: str

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return member_sync_key(self.group_id, self.member_id)


@dataclass(frozen=True, slots=True)
class RegularExpressionsRefresh:
    """The regular expressions of a consumer group have to be matched with the topics.

    `describable` returns those topics that the client may know of whose heartbeat is the reason.
    """

    group_id: str
    regexes: frozenset[str]
    describable: Callable[[Collection[str]], frozenset[str]]

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return f"consumer-group-regex-{self.group_id}"


@dataclass(frozen=True, slots=True)
class GroupMetadataExpiration:
    """Offsets and groups have to be looked through for expired ones."""

    @property
    def key(self) -> str:
        """The key by which this timer is set, replaced and cancelled."""
        return "expire-group-metadata"


def heartbeat_key(group_id: str, member_id: str) -> str:
    """Return the key of a member's session timer."""
    return f"heartbeat-{group_id}-{member_id}"


def join_key(group_id: str) -> str:
    """Return the key of the timer of a join phase."""
    return f"join-{group_id}"


def sync_key(group_id: str) -> str:
    """Return the key of the timer of a sync phase."""
    return f"sync-{group_id}"


def session_timeout_key(group_id: str, member_id: str) -> str:
    """Return the key of the timer of a session in a consumer group or a share group."""
    return f"session-timeout-{group_id}-{member_id}"


def rebalance_timeout_key(group_id: str, member_id: str) -> str:
    """Return the key of the timer within which a member has to give up partitions."""
    return f"rebalance-timeout-{group_id}-{member_id}"


def member_join_key(group_id: str, member_id: str) -> str:
    """Return the key of the timer within which a classic member of a consumer group has to join."""
    return f"join-{group_id}-{member_id}"


def member_sync_key(group_id: str, member_id: str) -> str:
    """Return the key of the timer within which a classic member of a consumer group has to sync."""
    return f"sync-{group_id}-{member_id}"
