"""Share sessions: who has one, what is news to a member, and their end with the connection."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from kvorum.broker.share_session.context import (
    ReadSharePartition,
    acknowledge_session_update,
    new_context,
)
from kvorum.broker.share_session.session import EPOCH_MAX, FINAL_EPOCH, ShareSessionKey, next_epoch
from kvorum.broker.share_session.session_cache import ShareSessionCache
from kvorum.broker.share_session.topic_id_partition import TopicIdPartition
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.share_fetch import ShareFetchResponse

TOPIC = b"1" * 16
FIRST, SECOND = (TopicIdPartition(TOPIC, index, "orders") for index in range(2))
ALICE = ShareSessionKey("group", "alice")
BOB = ShareSessionKey("group", "bob")


@dataclass
class Listener:
    """Takes down what it hears."""

    heard: list[str] = field(default_factory=list[str])

    def on_member_leave(self, key: ShareSessionKey) -> None:
        self.heard.append(f"{key.member_id} leaves")

    def on_group_empty(self, group_id: str) -> None:
        self.heard.append(f"{group_id} is empty")


def begin(
    cache: ShareSessionCache, key: ShareSessionKey, *listed: TopicIdPartition, connection: str = "c"
) -> None:
    """Begin a session."""
    new_context(cache, key, 0, connection, listed=listed, forgotten=(), has_acknowledgements=False)


def refusal(
    cache: ShareSessionCache, epoch: int, *listed: TopicIdPartition, acknowledges: bool = False
) -> ErrorCode:
    """Return the code with which a request of ALICE is refused."""
    with pytest.raises(RequestError) as refused:
        new_context(
            cache, ALICE, epoch, "c", listed=listed, forgotten=(), has_acknowledgements=acknowledges
        )
    return refused.value.code


def read(partition: TopicIdPartition, records: bytes = b"", code: int = 0) -> ReadSharePartition:
    """Return what was read of a partition."""
    data = ShareFetchResponse.PartitionData(partition.partition, code, records=records)
    return ReadSharePartition(partition, data)


def indexes(response: ShareFetchResponse) -> list[int]:
    """Return the partitions of a response."""
    return [one.partition_index for topic in response.responses for one in topic.partitions]


@pytest.mark.parametrize(("epoch", "following"), [(0, 1), (EPOCH_MAX, 1), (FINAL_EPOCH, -1)])
def test_epochs_follow_each_other_and_begin_again_at_one(epoch: int, following: int) -> None:
    assert next_epoch(epoch) == following


def test_a_member_without_a_session_or_with_another_epoch_is_refused() -> None:
    cache = ShareSessionCache(1)
    assert refusal(cache, 1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert refusal(cache, FINAL_EPOCH) is ErrorCode.SHARE_SESSION_NOT_FOUND
    begin(cache, ALICE, FIRST)
    assert refusal(cache, 2) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert refusal(cache, 0, acknowledges=True) is ErrorCode.INVALID_REQUEST
    assert refusal(cache, 0, FIRST, FIRST) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_no_session_begins_without_room_for_it() -> None:
    cache = ShareSessionCache(1)
    begin(cache, BOB)
    assert refusal(cache, 0) is ErrorCode.SHARE_SESSION_LIMIT_REACHED


def test_a_session_that_begins_again_needs_no_second_room() -> None:
    cache = ShareSessionCache(1)
    begin(cache, ALICE, FIRST)
    begin(cache, ALICE, FIRST, SECOND)
    assert (len(cache), cache.partition_count) == (1, 2)


def test_an_acknowledgement_takes_the_next_epoch_and_never_begins_a_session() -> None:
    cache = ShareSessionCache(1)
    begin(cache, ALICE)
    acknowledge_session_update(cache, ALICE, 1)
    with pytest.raises(RequestError) as again:
        acknowledge_session_update(cache, ALICE, 1)
    assert again.value.code is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    with pytest.raises(RequestError) as initial:
        acknowledge_session_update(cache, BOB, 0)
    assert initial.value.code is ErrorCode.INVALID_SHARE_SESSION_EPOCH


def test_a_partition_is_in_a_later_response_only_with_news() -> None:
    cache = ShareSessionCache(1)
    begin(cache, ALICE, FIRST)

    def respond(epoch: int, *parts: ReadSharePartition) -> list[int]:
        listed = [part.partition for part in parts]
        context = new_context(
            cache, ALICE, epoch, "c", listed=listed, forgotten=(), has_acknowledgements=False
        )
        return indexes(context.response(parts))

    assert respond(1, read(FIRST), read(SECOND)) == [1], "new in the session"
    assert respond(2, read(FIRST), read(SECOND)) == []
    assert respond(3, read(FIRST, b"records"), read(SECOND)) == [0]
    assert respond(4, read(FIRST), read(SECOND, code=ErrorCode.NOT_LEADER_OR_FOLLOWER)) == [1]
    assert respond(5, read(FIRST), read(SECOND)) == [1], "the error is over"


def test_partitions_that_returned_records_come_last_in_the_next_fetch() -> None:
    cache = ShareSessionCache(1)
    begin(cache, ALICE, FIRST, SECOND)
    context = new_context(cache, ALICE, 1, "c", listed=(), forgotten=(), has_acknowledgements=False)
    context.response([read(FIRST, b"records"), read(SECOND)])
    assert list(context.partitions) == [SECOND, FIRST]


def test_a_forgotten_partition_is_no_longer_fetched() -> None:
    cache = ShareSessionCache(1)
    begin(cache, ALICE, FIRST, SECOND)
    context = new_context(
        cache, ALICE, 1, "c", listed=(), forgotten=[FIRST], has_acknowledgements=False
    )
    assert list(context.partitions) == [SECOND]
    assert cache.partition_count == 1


def test_a_response_that_another_request_has_overtaken_is_an_error() -> None:
    cache = ShareSessionCache(1)
    begin(cache, ALICE, FIRST)
    first = new_context(cache, ALICE, 1, "c", listed=(), forgotten=(), has_acknowledgements=False)
    acknowledge_session_update(cache, ALICE, 2)
    response = first.response([read(FIRST, b"records")])
    assert response.error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert not response.responses
    assert first.throttled_response(9).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH


def test_the_end_of_a_connection_ends_its_session_and_forgets_an_empty_group() -> None:
    cache, listener = ShareSessionCache(2), Listener()
    begin(cache, ALICE, FIRST, connection="a")
    begin(cache, BOB, FIRST, connection="b")
    cache.on_disconnect("a", listener)
    assert listener.heard == ["alice leaves"]
    cache.on_disconnect("b", listener)
    assert listener.heard == ["alice leaves", "bob leaves", "group is empty"]
    assert (len(cache), cache.partition_count, cache.eviction_count) == (0, 0, 2)


def test_the_end_of_an_earlier_connection_leaves_the_member_its_session() -> None:
    cache, listener = ShareSessionCache(1), Listener()
    begin(cache, ALICE, FIRST, connection="old")
    begin(cache, ALICE, FIRST, connection="new")
    cache.on_disconnect("old", listener)
    assert not listener.heard
    assert len(cache) == 1
