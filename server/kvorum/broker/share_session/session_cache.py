"""The share sessions of a broker, with their connections (Kafka's ShareSessionCache)."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Protocol

from kvorum.broker.share_session.session import ShareSession, ShareSessionKey
from kvorum.broker.share_session.topic_id_partition import TopicIdPartition


class ShareGroupListener(Protocol):
    """The one who acts when the connection of a session has ended (Kafka's ShareGroupListener)."""

    def on_member_leave(self, key: ShareSessionKey, /) -> None:
        """Release what a member has acquired: its session is about to go."""
        ...

    def on_group_empty(self, group_id: str, /) -> None:
        """Forget the partitions of a group that has no session here any more."""
        ...


@dataclass(slots=True)
class _ConnectedSession:
    """The session that a connection began last; stale once it has ended, or was begun again."""

    key: ShareSessionKey
    is_stale: bool = False


class ShareSessionCache:
    """The sessions by member; at most `sessions_max` (``group.share.max.share.sessions``)."""

    def __init__(self, sessions_max: int) -> None:
        self._sessions_max = sessions_max
        self._sessions: dict[ShareSessionKey, ShareSession] = {}
        self._member_counts: dict[str, int] = {}
        self._connected: dict[Hashable, _ConnectedSession] = {}
        self.partition_count = 0
        """The partitions of all sessions."""
        self.eviction_count = 0
        """The sessions that have ended with their connections."""

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: ShareSessionKey) -> ShareSession | None:
        """Return the session of a member; None without one."""
        return self._sessions.get(key)

    def create(
        self, key: ShareSessionKey, partitions: Iterable[TopicIdPartition], connection: Hashable
    ) -> ShareSession | None:
        """Begin a session of a member that has none; return None without room for one."""
        if len(self._sessions) >= self._sessions_max:
            return None
        session = ShareSession(key, partitions, connection)
        self._sessions[key] = session
        self.count_partitions(session)
        self._member_counts[key.group_id] = self._member_counts.get(key.group_id, 0) + 1
        self._connected[connection] = _ConnectedSession(key)
        return session

    def remove(self, key: ShareSessionKey) -> ShareSession | None:
        """End the session of a member, if it has one, and return it."""
        session = self._sessions.pop(key, None)
        if session is None:
            return None
        self.partition_count -= session.counted
        self._member_counts[key.group_id] -= 1
        connected = self._connected.get(session.connection)
        if connected is not None:
            connected.is_stale = True
        return session

    def remove_all(self) -> None:
        """End every session: share groups are not supported any more."""
        self._sessions.clear()
        self._member_counts.clear()
        self.partition_count = 0

    def count_partitions(self, session: ShareSession) -> None:
        """Count the partitions of a session again, which have changed."""
        self.partition_count += len(session.partitions) - session.counted
        session.counted = len(session.partitions)

    def on_disconnect(self, connection: Hashable, listener: ShareGroupListener) -> None:
        """End the session of a connection that has ended, and forget a group that is empty then."""
        connected = self._connected.pop(connection, None)
        if connected is None:
            return
        key = connected.key
        if not connected.is_stale and key in self._sessions:
            self.eviction_count += 1
            listener.on_member_leave(key)
            self.remove(key)
        if not self._member_counts.get(key.group_id):
            self._member_counts.pop(key.group_id, None)
            listener.on_group_empty(key.group_id)
