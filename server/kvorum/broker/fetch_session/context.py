"""The partitions that a Fetch is about, with a session or without (FetchContext, FetchManager)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from kvorum.broker.fetch_session.session import (
    FULL,
    FULL_AND_FINAL,
    CachedPartition,
    FetchSession,
    FetchSessionCache,
    FetchSessionCacheShard,
    PartitionKey,
    TopicNames,
    key_of,
    next_epoch,
)
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from random import Random

SIZE_BYTES: Final = 4
"""The bytes before a frame."""
FIRST_VERSION_WITH_TOPIC_IDS = 13


class ReadPartition(NamedTuple):
    """The data that was read of a partition, or its refusal."""

    topic: str
    topic_id: bytes
    data: FetchResponse.PartitionData


class FetchContext(ABC):
    """The partitions that a request is about, and the response once they are read."""

    @property
    @abstractmethod
    def topics(self) -> list[FetchRequest.FetchTopic]:
        """The partitions to read, in this order; a topic may come more than once."""

    @abstractmethod
    def response(
        self, topics: Iterable[FetchResponse.FetchableTopicResponse], *, now_ms: float
    ) -> FetchResponse:
        """Return the response; `topics` are what was read and what is refused, in that order."""

    def response_size(
        self, topics: Iterable[FetchResponse.FetchableTopicResponse], *, version: int
    ) -> int:
        """Return the bytes that the response would have, as Kafka counts them; change nothing."""
        return response_size(_each(topics), version)

    def throttled_response(self, throttle_time_ms: int) -> FetchResponse:
        """Return the response of a client beyond its quota, in place of what was read."""
        return FetchResponse(throttle_time_ms=throttle_time_ms)


@dataclass(frozen=True, slots=True)
class SessionErrorContext(FetchContext):
    """A request for a session that is not there, or not as the client thinks.

    As in Kafka, the error waits for the next request while the client is beyond its quota.
    """

    error: ErrorCode

    @property
    def topics(self) -> list[FetchRequest.FetchTopic]:
        """Nothing is read."""
        return []

    def response(
        self,
        topics: Iterable[FetchResponse.FetchableTopicResponse],  # noqa: ARG002 - there are none
        *,
        now_ms: float,  # noqa: ARG002 - nothing is kept
    ) -> FetchResponse:
        """Return the error."""
        return FetchResponse(error_code=self.error)

    def response_size(
        self,
        topics: Iterable[FetchResponse.FetchableTopicResponse],  # noqa: ARG002 - there are none
        *,
        version: int,
    ) -> int:
        """Return the size of a response without partitions."""
        return response_size((), version)


@dataclass(frozen=True, slots=True)
class SessionlessFetchContext(FetchContext):
    """A full request of a client that wants no session."""

    partitions: dict[PartitionKey, CachedPartition]

    @property
    def topics(self) -> list[FetchRequest.FetchTopic]:
        """Everything that is listed."""
        return asked_topics(self.partitions.values())

    def response(
        self,
        topics: Iterable[FetchResponse.FetchableTopicResponse],
        *,
        now_ms: float,  # noqa: ARG002 - nothing is kept
    ) -> FetchResponse:
        """Return everything that was read."""
        return FetchResponse(responses=response_topics(_each(topics)))


@dataclass(frozen=True, slots=True)
class FullFetchContext(FetchContext):
    """A full request that begins a session, if there is room for one."""

    partitions: dict[PartitionKey, CachedPartition]
    cache: FetchSessionCache
    is_privileged: bool
    uses_topic_ids: bool

    @property
    def topics(self) -> list[FetchRequest.FetchTopic]:
        """Everything that is listed."""
        return asked_topics(self.partitions.values())

    def response(
        self, topics: Iterable[FetchResponse.FetchableTopicResponse], *, now_ms: float
    ) -> FetchResponse:
        """Begin a session with what was read, and return all of it."""
        read = list(_each(topics))
        shard = self.cache.next_shard()
        session = shard.create(
            len(read),
            is_privileged=self.is_privileged,
            uses_topic_ids=self.uses_topic_ids,
            now_ms=now_ms,
        )
        responses = response_topics(read)
        if session is None:
            return FetchResponse(responses=responses)
        for one in read:
            key = key_of(one.topic, one.topic_id, one.data.partition_index)
            cached = self.partitions[key]
            # An error is news to the client as long as it lasts, even one of the first response.
            cached.high_watermark = one.data.high_watermark
            cached.log_start_offset = one.data.log_start_offset
            session.partitions[key] = cached
        shard.touch(session, now_ms)
        return FetchResponse(session_id=session.id, responses=responses)


@dataclass(frozen=True, slots=True)
class IncrementalFetchContext(FetchContext):
    """A request that names what has changed since the last one of its session."""

    session: FetchSession
    expected_epoch: int
    """The session's epoch as long as no other request of the session has come."""

    @property
    def topics(self) -> list[FetchRequest.FetchTopic]:
        """Everything in the session."""
        return asked_topics(self.session.partitions.values())

    def response(
        self,
        topics: Iterable[FetchResponse.FetchableTopicResponse],
        *,
        now_ms: float,  # noqa: ARG002 - the request was the use
    ) -> FetchResponse:
        """Return what is news to the client; raises no error for a session that has ended."""
        session = self.session
        if session.epoch != self.expected_epoch:
            return FetchResponse(
                error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.id
            )
        return FetchResponse(
            session_id=session.id, responses=response_topics(self._news(_each(topics)))
        )

    def response_size(
        self, topics: Iterable[FetchResponse.FetchableTopicResponse], *, version: int
    ) -> int:
        """Return the size of what is news to the client."""
        if self.session.epoch != self.expected_epoch:
            return response_size((), version)
        partitions = self.session.partitions
        news = (
            one
            for one in _each(topics)
            if partitions[key_of(one.topic, one.topic_id, one.data.partition_index)].is_news(
                one.data
            )
        )
        return response_size(news, version)

    def throttled_response(self, throttle_time_ms: int) -> FetchResponse:
        """Return nothing, and keep the news for the next request."""
        response = FetchResponse(session_id=self.session.id, throttle_time_ms=throttle_time_ms)
        if self.session.epoch != self.expected_epoch:
            response.error_code = ErrorCode.INVALID_FETCH_SESSION_EPOCH
        return response

    def _news(self, read: Iterable[ReadPartition]) -> Iterator[ReadPartition]:
        partitions = self.session.partitions
        for one in read:
            key = key_of(one.topic, one.topic_id, one.data.partition_index)
            if partitions[key].note_sent(one.data):
                if one.data.records:
                    # It comes last from now on, for the others' sake.
                    partitions[key] = partitions.pop(key)
                yield one


def asked_topics(partitions: Iterable[CachedPartition]) -> list[FetchRequest.FetchTopic]:
    """Return what to read; neighbours of one topic go together."""
    return [
        FetchRequest.FetchTopic(name, topic_id, [one.requested for one in of_topic])
        for (name, topic_id), of_topic in groupby(
            partitions, key=lambda one: (one.name, one.topic_id)
        )
    ]


def response_topics(
    partitions: Iterable[ReadPartition],
) -> list[FetchResponse.FetchableTopicResponse]:
    """Return the topics of a response; neighbours of one topic go together."""
    return [
        FetchResponse.FetchableTopicResponse(name, topic_id, [one.data for one in of_topic])
        for (name, topic_id), of_topic in groupby(
            partitions, key=lambda one: (one.topic, one.topic_id)
        )
    ]


def response_size(partitions: Iterable[ReadPartition], version: int) -> int:
    """Return the size of a response with `partitions` (Kafka's FetchResponse.sizeOf)."""
    response = FetchResponse(responses=response_topics(partitions))
    return SIZE_BYTES + sum(map(len, response.encode_parts(version)))


def _each(topics: Iterable[FetchResponse.FetchableTopicResponse]) -> Iterator[ReadPartition]:
    for topic in topics:
        for data in topic.partitions:
            yield ReadPartition(topic.topic, topic.topic_id, data)


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
