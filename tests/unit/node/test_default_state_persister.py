"""The persister: whom it asks, what it asks together, and when it asks again."""

from itertools import pairwise
from typing import Any

import pytest
from tests.unit.node.persisted_shares import (
    ALL_TRIES_MS,
    ME,
    OTHER,
    PersistedShares,
    image,
    lost,
    partition_of,
    results,
)
from tests.unit.node.persisted_shares import codes as codes_of

from kvorum.metadata.topic_names import SHARE_GROUP_STATE_TOPIC
from kvorum.node.broker.exponential_backoff import MULTIPLIER
from kvorum.node.broker.share_coordinator.default_state_persister import ATTEMPTS_MAX, BACKOFF_MS
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from kvorum.wire.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from kvorum.wire.primitives import Message


def partitions_of(request: WriteShareGroupStateRequest) -> list[int]:
    return [one.partition for topic in request.topics for one in topic.partitions]


def test_each_share_partition_is_written_to_its_coordinator() -> None:
    current = image(ME, OTHER)
    node = PersistedShares(current, results())
    own, foreign = partition_of(current, ME), partition_of(current, OTHER)
    assert codes_of(node.written(own, foreign)) == {own: 0, foreign: 0}
    asked = {node_id: partitions_of(request) for node_id, request in node.requests}
    assert asked == {ME: [own], OTHER: [foreign]}


def test_what_waits_for_a_broker_is_asked_together() -> None:
    node = PersistedShares(image(OTHER), results())
    pulse = node.hold()
    first = node.written(0)
    second = node.written(1)
    third = node.written(2, 3)
    again = node.written(3)
    other_group = node.written(0, group_id="other")
    deleted = node.deleted(1)
    assert len(node.requests) == 1
    node.held = None
    pulse.beat()
    node.run()
    # The second question about a share partition is another request, and so is each group's.
    asked: list[tuple[type[Any], str, list[int]]] = [
        (type(one), one.group_id, partitions_of(one)) for _, one in node.requests[1:]
    ]
    assert asked == [
        (WriteShareGroupStateRequest, "g", [1, 2, 3]),
        (WriteShareGroupStateRequest, "g", [3]),
        (WriteShareGroupStateRequest, "other", [0]),
        (DeleteShareGroupStateRequest, "g", [1]),
    ]
    answers = (first, second, third, again, other_group, deleted)
    found: list[dict[int, int]] = [codes_of(one) for one in answers]
    assert found == [{0: 0}, {1: 0}, {2: 0, 3: 0}, {3: 0}, {0: 0}, {1: 0}]


def test_a_missing_topic_is_made() -> None:
    node = PersistedShares(image(), results())
    assert codes_of(node.written(0)) == {0: 0}
    assert node.created == [SHARE_GROUP_STATE_TOPIC]


def test_a_coordinator_that_has_moved_is_looked_for() -> None:
    node = PersistedShares(image(ME), results(ErrorCode.NOT_COORDINATOR))
    answers = node.written(0)
    node.image = image(OTHER)
    node.answer = results()
    node.run(2 * BACKOFF_MS * MULTIPLIER)
    assert codes_of(answers) == {0: 0}
    assert [node_id for node_id, _ in node.requests] == [ME, OTHER]


def test_what_may_pass_is_asked_again_with_growing_pauses_and_not_for_ever() -> None:
    for answer, code in (
        (results(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (lost, ErrorCode.NETWORK_EXCEPTION),
    ):
        node = PersistedShares(image(OTHER), answer)
        answers = node.written(0)
        times: list[float] = []
        while not answers:
            node.run(BACKOFF_MS)
            if len(node.requests) > len(times):
                times.append(node.events.now_ms)
            assert node.events.now_ms < ALL_TRIES_MS
        pauses = [later - earlier for earlier, later in pairwise(times)]
        growing = [BACKOFF_MS * MULTIPLIER**number for number in range(1, ATTEMPTS_MAX)]
        assert pauses == pytest.approx(growing, abs=BACKOFF_MS)
        assert codes_of(answers) == {0: code}
        (result,) = answers[0].results[0].partitions
        assert result.error_message == (
            "Error in write state RPC. "
            "Exhausted max retries to complete write state RPC without success."
        )


def test_without_a_leader_there_is_no_coordinator() -> None:
    node = PersistedShares(image(-1), results())
    answers = node.written(0)
    node.run(ALL_TRIES_MS)
    assert codes_of(answers) == {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert node.requests == []


def test_a_refusal_is_the_end_with_its_text() -> None:
    for message, text in (("why", "why"), (None, ErrorCode.FENCED_STATE_EPOCH.default_message)):
        node = PersistedShares(image(OTHER), results(ErrorCode.FENCED_STATE_EPOCH, message))
        answers = node.written(0)
        assert codes_of(answers) == {0: ErrorCode.FENCED_STATE_EPOCH}
        (result,) = answers[0].results[0].partitions
        assert result.error_message == f"Error in write state RPC. {text}"


def test_an_older_broker_cannot_be_asked() -> None:
    node = PersistedShares(image(OTHER), results())
    node.has_versions = False
    assert codes_of(node.written(0)) == {0: ErrorCode.UNSUPPORTED_VERSION}


def test_a_share_partition_that_a_response_leaves_out_has_an_error() -> None:
    def nothing(_node_id: int, _request: Message) -> Message:
        return WriteShareGroupStateResponse()

    node = PersistedShares(image(OTHER), nothing)
    assert codes_of(node.written(0)) == {0: ErrorCode.UNKNOWN_SERVER_ERROR}


def test_a_persister_that_is_closed_refuses_what_waits() -> None:
    node = PersistedShares(image(OTHER), results())
    node.hold()
    under_way: list[Any] = node.written(0)
    waiting: list[Any] = node.written(1)
    node.persister.close()
    node.run()
    assert codes_of(under_way) == {0: ErrorCode.NETWORK_EXCEPTION}
    assert codes_of(waiting) == {1: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert codes_of(node.written(2)) == {2: ErrorCode.COORDINATOR_NOT_AVAILABLE}
