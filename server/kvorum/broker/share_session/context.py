"""The partitions that a ShareFetch is about, in its session (Kafka's ShareFetchContext)."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kvorum.broker.share_session.session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    ShareSession,
    ShareSessionKey,
    next_epoch,
)
from kvorum.broker.share_session.session_cache import ShareSessionCache
from kvorum.broker.share_session.topic_id_partition import TopicIdPartition
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.share_fetch import ShareFetchResponse

SIZE_BYTES: Final = 4
"""The bytes before a frame."""


class ReadSharePartition(NamedTuple):
    """The data that was read of a partition, or its refusal."""

    partition: TopicIdPartition
    data: ShareFetchResponse.PartitionData


class ShareFetchContext(ABC):
    """The partitions that a request is about, and the response once they are read."""

    @property
    @abstractmethod
    def partitions(self) -> Sequence[TopicIdPartition]:
        """The partitions of the request or its session, in this order, unknown ones too."""

    def response(self, read: Iterable[ReadSharePartition]) -> ShareFetchResponse:
        """Return the response with what was read and what is refused."""
        return ShareFetchResponse(responses=response_topics(read))

    def response_size(self, read: Iterable[ReadSharePartition], *, version: int) -> int:
        """Return the bytes that the response would have, as Kafka counts them; change nothing."""
        return response_size(read, version)

    def throttled_response(self, throttle_time_ms: int) -> ShareFetchResponse:
        """Return the response of a client beyond its quota, in place of what was read."""
        return ShareFetchResponse(throttle_time_ms=throttle_time_ms)


class FinalContext(ShareFetchContext):
    """A request that ends its session: nothing is read."""

    @property
    def partitions(self) -> Sequence[TopicIdPartition]:
        """Nothing is read."""
        return ()


@dataclass(frozen=True, slots=True)
class InitialContext(ShareFetchContext):
    """A request that has begun a session."""

    listed: tuple[TopicIdPartition, ...]

    @property
    def partitions(self) -> Sequence[TopicIdPartition]:
        """Everything that is listed."""
        return self.listed


@dataclass(frozen=True, slots=True)
class SubsequentContext(ShareFetchContext):
    """A request that names what has changed since the last one of its session."""

    session: ShareSession
    expected_epoch: int
    """The session's epoch as long as no other request of the session has come."""

    @property
    def partitions(self) -> Sequence[TopicIdPartition]:
        """Everything in the session."""
        return [one.partition for one in self.session.partitions.values()]

    @property
    def _is_overtaken(self) -> bool:
        return self.session.epoch != self.expected_epoch

    def response(self, read: Iterable[ReadSharePartition]) -> ShareFetchResponse:
        """Return what is news to the member; raises no error for a session that has ended."""
        if self._is_overtaken:
            return ShareFetchResponse(error_code=ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        return ShareFetchResponse(responses=response_topics(self._news(read)))

    def response_size(self, read: Iterable[ReadSharePartition], *, version: int) -> int:
        """Return the size of what is news to the member."""
        if self._is_overtaken:
            return response_size((), version)
        partitions = self.session.partitions
        news = (one for one in read if partitions[one.partition.key].is_news(one.data))
        return response_size(news, version)

    def throttled_response(self, throttle_time_ms: int) -> ShareFetchResponse:
        """Return nothing, and keep the news for the next request."""
        response = ShareFetchResponse(throttle_time_ms=throttle_time_ms)
        if self._is_overtaken:
            response.error_code = ErrorCode.INVALID_SHARE_SESSION_EPOCH
        return response

    def _news(self, read: Iterable[ReadSharePartition]) -> Iterator[ReadSharePartition]:
        partitions = self.session.partitions
        for one in read:
            key = one.partition.key
            if partitions[key].note_sent(one.data):
                if one.data.records:
                    # It comes last from now on, for the others' sake.
                    partitions[key] = partitions.pop(key)
                yield one


def new_context(
    cache: ShareSessionCache,
    key: ShareSessionKey,
    epoch: int,
    connection: Hashable,
    *,
    listed: Sequence[TopicIdPartition],
    forgotten: Sequence[TopicIdPartition],
    has_acknowledgements: bool,
) -> ShareFetchContext:
    """Return what a ShareFetch is about; its session is created or changed.

    A session that a request ends is removed after the response. Raises RequestError:
    SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, INVALID_REQUEST for acknowledgements in a
    request that begins a session, SHARE_SESSION_LIMIT_REACHED.
    """
    if epoch == FINAL_EPOCH:
        demand_session(cache, key)
        return FinalContext()
    if epoch != INITIAL_EPOCH:
        session = demand_session(cache, key)
        demand_epoch(session, epoch)
        session.update(listed, forgotten)
        cache.count_partitions(session)
        session.advance()
        return SubsequentContext(session, next_epoch(epoch))
    if has_acknowledgements:
        raise RequestError.with_default_message(ErrorCode.INVALID_REQUEST)
    cache.remove(key)
    if len({one.key for one in listed}) < len(listed):
        # As in Kafka, whose collection takes no partition twice.
        raise RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR)
    if cache.create(key, listed, connection) is None:
        raise RequestError.with_default_message(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
    return InitialContext(tuple(listed))


def acknowledge_session_update(cache: ShareSessionCache, key: ShareSessionKey, epoch: int) -> None:
    """Take a ShareAcknowledge into its session.

    Raises RequestError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
    """
    if epoch == INITIAL_EPOCH:
        raise RequestError.with_default_message(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    session = demand_session(cache, key)
    if epoch != FINAL_EPOCH:
        demand_epoch(session, epoch)
        session.advance()


def demand_session(cache: ShareSessionCache, key: ShareSessionKey) -> ShareSession:
    """Return the session of a member; raises RequestError without one."""
    session = cache.get(key)
    if session is None:
        raise RequestError.with_default_message(ErrorCode.SHARE_SESSION_NOT_FOUND)
    return session


def demand_epoch(session: ShareSession, epoch: int) -> None:
    """Raise RequestError for a request that is not the next one of its session."""
    if session.epoch != epoch:
        raise RequestError.with_default_message(ErrorCode.INVALID_SHARE_SESSION_EPOCH)


def response_topics(
    partitions: Iterable[ReadSharePartition],
) -> list[ShareFetchResponse.ShareFetchableTopicResponse]:
    """Return the topics of a response, each once, in the order of their first partitions."""
    topics: dict[bytes, ShareFetchResponse.ShareFetchableTopicResponse] = {}
    for partition, data in partitions:
        topic = topics.get(partition.topic_id)
        if topic is None:
            topic = ShareFetchResponse.ShareFetchableTopicResponse(partition.topic_id, [])
            topics[partition.topic_id] = topic
        topic.partitions.append(data)
    return list(topics.values())


def response_size(partitions: Iterable[ReadSharePartition], version: int) -> int:
    """Return the size of a response with `partitions` (Kafka's ShareFetchResponse.sizeOf)."""
    response = ShareFetchResponse(responses=response_topics(partitions))
    return SIZE_BYTES + sum(map(len, response.encode_parts(version)))
