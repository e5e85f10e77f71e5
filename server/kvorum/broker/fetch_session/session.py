"""One fetch session, with what was last sent, and the sessions of a broker, in shards with room.

Kafka's FetchSession and FetchSessionCacheShard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.uuid_text import ZERO_UUID

if TYPE_CHECKING:
    from random import Random

NO_SESSION: Final = 0
FULL_AND_FINAL: Final = -1
FULL: Final = 0
EPOCH_MAX: Final = 2**31 - 1
NOTHING_SENT: Final = -1

TopicNames: TypeAlias = Callable[[bytes], str | None]
"""From a topic's id to its name; None for an id that no topic has."""
SHARDS: Final = 8
EVICTION_MS: Final = 120_000
_IDS_OF_SHARD: Final = (2**31 - 1) // SHARDS


class PartitionKey(NamedTuple):
    """A partition as requests name it: by the topic's id, or by its name in old versions."""

    topic: bytes | str
    partition: int


@dataclass(slots=True)
class CachedPartition:
    """The last request for a partition, and the offsets that were last sent of it."""

    name: str
    """Empty as long as no topic with the id is known."""

    topic_id: bytes
    requested: FetchRequest.FetchPartition
    high_watermark: int = NOTHING_SENT
    log_start_offset: int = NOTHING_SENT

    @property
    def key(self) -> PartitionKey:
        """The partition as requests name it."""
        return key_of(self.name, self.topic_id, self.requested.partition)

    def resolve(self, names: TopicNames) -> None:
        """Look for the name of a topic that was unknown when it was asked for."""
        if not self.name and self.topic_id != ZERO_UUID:
            self.name = names(self.topic_id) or ""

    def is_news(self, data: FetchResponse.PartitionData) -> bool:
        """Return whether what was read has to be sent."""
        return (
            len(data.records or b"") > 0
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
            or data.preferred_read_replica >= 0
            or data.error_code != ErrorCode.NONE
            or data.maybe_diverging_epoch is not None
        )

    def note_sent(self, data: FetchResponse.PartitionData) -> bool:
        """Take note of what was read; return whether it has to be sent."""
        is_news = self.is_news(data)
        # Upon an error the next response has the partition again, so that its end is noticed.
        is_error = data.error_code != ErrorCode.NONE
        self.high_watermark = NOTHING_SENT if is_error else data.high_watermark
        self.log_start_offset = data.log_start_offset
        return is_news


@dataclass(slots=True)
class FetchSession:
    """A client's partitions; those that returned records come last in the next fetch."""

    id: int
    is_privileged: bool
    """Whether the client is a follower."""

    uses_topic_ids: bool
    created_ms: float
    partitions: dict[PartitionKey, CachedPartition] = field(
        default_factory=dict[PartitionKey, CachedPartition]
    )
    epoch: int = 1
    """The epoch that the next request has."""

    def update(
        self,
        listed: Mapping[PartitionKey, CachedPartition],
        forgotten: Iterable[FetchRequest.ForgottenTopic],
    ) -> None:
        """Add and change what a request lists, then remove what it forgets."""
        for key, asked in listed.items():
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = asked
            else:
                known.requested = asked.requested
        for topic in forgotten:
            for index in topic.partitions:
                self.partitions.pop(key_of(topic.topic, topic.topic_id, index), None)

    def advance(self) -> None:
        """Expect the request after this one; after the largest epoch comes 1."""
        self.epoch = next_epoch(self.epoch)


def next_epoch(epoch: int) -> int:
    """Return the epoch after one of an incremental session."""
    return 1 if epoch == EPOCH_MAX else epoch + 1


def key_of(name: str, topic_id: bytes, partition: int) -> PartitionKey:
    """Return the key of a partition, by the id where there is one."""
    return PartitionKey(name if topic_id == ZERO_UUID else topic_id, partition)


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
