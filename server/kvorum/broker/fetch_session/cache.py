"""The sessions of a broker, in shards with room for so many each (FetchSessionCacheShard)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from kvorum.broker.fetch_session.session import NO_SESSION, FetchSession

if TYPE_CHECKING:
    from random import Random

SHARDS: Final = 8
EVICTION_MS: Final = 120_000
_IDS_OF_SHARD: Final = (2**31 - 1) // SHARDS


class _EvictableKey(NamedTuple):
    """The order of eviction: consumers before followers, small sessions before large ones."""

    is_privileged: bool
    size: int
    id: int


@dataclass(slots=True)
class _Entry:
    """A session as it was when it was last used; what it may be evicted for was decided then."""

    session: FetchSession
    last_used_ms: float = 0
    size: int = 0
    is_old: bool = False

    def touch(self, now_ms: float) -> None:
        """Take note of a use."""
        self.last_used_ms = now_ms
        self.size = len(self.session.partitions)
        self.is_old = now_ms - self.session.created_ms > EVICTION_MS

    @property
    def key(self) -> _EvictableKey:
        """The place in the order of eviction."""
        return _EvictableKey(self.session.is_privileged, self.size, self.session.id)

    def may_go(self, *, is_for_privileged: bool) -> bool:
        """Return whether the session may make room although it is in use."""
        return self.is_old or (is_for_privileged and not self.session.is_privileged)


class FetchSessionCacheShard:
    """The sessions whose ids belong to one shard; `number` counts the shards from 0."""

    def __init__(self, number: int, entries_max: int, random: Random) -> None:
        self._first_id = max(1, number * _IDS_OF_SHARD)
        self._end_id = (number + 1) * _IDS_OF_SHARD
        self._entries_max = entries_max
        self._random = random
        self._entries: dict[int, _Entry] = {}
        self.eviction_count = 0

    @property
    def partition_count(self) -> int:
        """The partitions of all sessions, as of their last use."""
        return sum(entry.size for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, session_id: int) -> FetchSession | None:
        """Return a session; None for an id that no session has."""
        entry = self._entries.get(session_id)
        return None if entry is None else entry.session

    def remove(self, session_id: int) -> None:
        """Forget a session, if it is there."""
        self._entries.pop(session_id, None)

    def touch(self, session: FetchSession, now_ms: float) -> None:
        """Take note that a session is used."""
        self._entries[session.id].touch(now_ms)

    def create(
        self, size: int, *, is_privileged: bool, uses_topic_ids: bool, now_ms: float
    ) -> FetchSession | None:
        """Return a new session for `size` partitions; None without room for it.

        The caller fills in the partitions, and then calls `touch`.
        """
        if len(self._entries) >= self._entries_max:
            victim = self._victim(_EvictableKey(is_privileged, size, NO_SESSION), now_ms)
            if victim is None:
                return None
            self.remove(victim)
            self.eviction_count += 1
        session = FetchSession(self._unused_id(), is_privileged, uses_topic_ids, now_ms)
        self._entries[session.id] = _Entry(session)
        return session

    def _victim(self, newcomer: _EvictableKey, now_ms: float) -> int | None:
        """Return the id of the session that makes room for another one."""
        oldest = min(
            self._entries.values(), key=lambda one: (one.last_used_ms, one.key.id), default=None
        )
        if oldest is None:
            return None
        if now_ms - oldest.last_used_ms > EVICTION_MS:
            return oldest.key.id
        may_go = (
            one.key
            for one in self._entries.values()
            if one.may_go(is_for_privileged=newcomer.is_privileged)
        )
        first = min(may_go, default=None)
        return None if first is None or newcomer < first else first.id

    def _unused_id(self) -> int:
        while True:
            found = self._random.randrange(self._first_id, self._end_id)
            if found not in self._entries:
                return found


class FetchSessionCache:
    """All shards; a new session goes to one after the other."""

    def __init__(self, slots: int, random: Random) -> None:
        self._shards = [
            FetchSessionCacheShard(number, slots // SHARDS, random) for number in range(SHARDS)
        ]
        self._next = 0

    def __len__(self) -> int:
        return sum(map(len, self._shards))

    @property
    def partition_count(self) -> int:
        """The partitions of all sessions, as of their last use."""
        return sum(shard.partition_count for shard in self._shards)

    @property
    def eviction_count(self) -> int:
        """The number of sessions that have made room for others."""
        return sum(shard.eviction_count for shard in self._shards)

    def shard_of(self, session_id: int) -> FetchSessionCacheShard | None:
        """Return the shard of an id; None for an id that no shard has."""
        if not -_IDS_OF_SHARD < session_id < SHARDS * _IDS_OF_SHARD:
            return None
        return self._shards[max(session_id, 0) // _IDS_OF_SHARD]

    def next_shard(self) -> FetchSessionCacheShard:
        """Return the shard that the next new session goes to."""
        shard = self._shards[self._next % SHARDS]
        self._next += 1
        return shard
