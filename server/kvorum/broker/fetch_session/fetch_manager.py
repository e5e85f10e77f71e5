"""The choice of the context of a Fetch request (Kafka's FetchManager)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvorum.broker.fetch_session.cache import FetchSessionCache, FetchSessionCacheShard
from kvorum.broker.fetch_session.context import (
    FetchContext,
    FullFetchContext,
    IncrementalFetchContext,
    SessionErrorContext,
    SessionlessFetchContext,
)
from kvorum.broker.fetch_session.session import (
    FULL,
    FULL_AND_FINAL,
    CachedPartition,
    FetchSession,
    PartitionKey,
    TopicNames,
    next_epoch,
)
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest

if TYPE_CHECKING:
    from random import Random

FIRST_VERSION_WITH_TOPIC_IDS = 13


class FetchManager:
    """The sessions of one broker."""

    def __init__(self, slots: int, random: Random) -> None:
        """Begin without sessions; `slots` is max.incremental.fetch.session.cache.slots."""
        self.cache = FetchSessionCache(slots, random)

    def new_context(
        self, request: FetchRequest, *, version: int, names: TopicNames, now_ms: float
    ) -> FetchContext:
        """Return what a request is about; a session of it is changed, created or ended.

        Raises RequestError UNKNOWN_SERVER_ERROR, as Kafka, for an id that no broker gives out.
        """
        uses_topic_ids = version >= FIRST_VERSION_WITH_TOPIC_IDS
        if request.session_epoch not in {FULL, FULL_AND_FINAL}:
            return self._incremental(request, names, now_ms, uses_topic_ids=uses_topic_ids)
        if request.session_id:
            self._shard(request.session_id).remove(request.session_id)
        listed = _listed(request, names)
        if request.session_epoch == FULL_AND_FINAL:
            return SessionlessFetchContext(listed)
        is_follower = max(request.replica_id, request.replica_state.replica_id) >= 0
        return FullFetchContext(listed, self.cache, is_follower, uses_topic_ids)

    def _incremental(
        self, request: FetchRequest, names: TopicNames, now_ms: float, *, uses_topic_ids: bool
    ) -> FetchContext:
        shard = self._shard(request.session_id)
        session = shard.get(request.session_id)
        if session is None:
            return SessionErrorContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return SessionErrorContext(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids is not uses_topic_ids:
            return SessionErrorContext(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return _advanced(session, shard, request, names, now_ms)

    def _shard(self, session_id: int) -> FetchSessionCacheShard:
        shard = self.cache.shard_of(session_id)
        if shard is None:
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR)
        return shard


def _advanced(
    session: FetchSession,
    shard: FetchSessionCacheShard,
    request: FetchRequest,
    names: TopicNames,
    now_ms: float,
) -> FetchContext:
    """Return the context of the next request of a session."""
    listed = _listed(request, names)
    session.update(listed, request.forgotten_topics_data)
    if not session.partitions:
        # As in Kafka, what the request lists is read even if it forgets just that.
        shard.remove(session.id)
        return SessionlessFetchContext(listed)
    session.advance()
    shard.touch(session, now_ms)
    for partition in session.partitions.values():
        partition.resolve(names)
    return IncrementalFetchContext(session, next_epoch(request.session_epoch))


def _listed(request: FetchRequest, names: TopicNames) -> dict[PartitionKey, CachedPartition]:
    """Return what a request lists; what is listed last about a partition counts."""
    listed: dict[PartitionKey, CachedPartition] = {}
    for topic in request.topics:
        for requested in topic.partitions:
            one = CachedPartition(topic.topic, topic.topic_id, requested)
            one.resolve(names)
            listed[one.key] = one
    return listed
