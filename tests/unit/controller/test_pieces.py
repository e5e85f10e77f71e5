"""Requests about very many partitions: the controller decides on them in pieces."""

import pytest
from tests.support.controller_under_test import PREFERRED, ControllerUnderTest, started_cluster

from kvorum.controller.api import PIECE_RECORDS, ControllerResult
from kvorum.controller.requests import handle_in_pieces
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from kvorum.wire.primitives import Message

PARTITION_COUNT = 2 * PIECE_RECORDS + 1
OF_ALL = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None)
UNREGISTRATION = UnregisterBrokerRequest(broker_id=2)


@pytest.fixture
def controller() -> ControllerUnderTest:
    """Two brokers that are in sync with every partition; broker 1 leads, as preferred."""
    cluster = started_cluster(brokers=2)
    cluster.create_topic("t", assignments=[(1, 2)] * PARTITION_COUNT)
    return cluster


def decided(
    controller: ControllerUnderTest, request: Message
) -> tuple[int, ControllerResult[Message]]:
    """Return the number of pauses and the result."""
    pieces = handle_in_pieces(
        controller.image, request, controller.context(type(request).MAX_VERSION)
    )
    pauses = 0
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return pauses, end.value
        pauses += 1


def test_an_election_for_all_partitions_pauses_where_none_is_needed(
    controller: ControllerUnderTest,
) -> None:
    pauses, result = decided(controller, OF_ALL)
    assert pauses == PARTITION_COUNT // PIECE_RECORDS
    assert result.records == ()


def test_an_unregistration_pauses(controller: ControllerUnderTest) -> None:
    pauses, result = decided(controller, UNREGISTRATION)
    assert pauses == PARTITION_COUNT // PIECE_RECORDS
    assert len(result.records) == PARTITION_COUNT + 1


def test_an_election_of_too_many_leaders_is_refused_before_all_are_elected(
    controller: ControllerUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic_id = controller.image.topics.ids["t"]
    controller.commit(
        tuple(
            (PartitionChangeRecord(partition_id=index, topic_id=topic_id, leader=2), 0)
            for index in range(PARTITION_COUNT)
        )
    )
    monkeypatch.setattr("kvorum.controller.api.MAX_RECORDS_PER_USER_OPERATION", PIECE_RECORDS)
    pauses, result = decided(controller, OF_ALL)
    assert pauses == 1
    assert isinstance(result.response, ElectLeadersResponse)
    assert result.response.error_code == ErrorCode.POLICY_VIOLATION
    assert result.records == ()


def test_an_unregistration_with_too_many_records_is_refused_before_it_has_them_all(
    controller: ControllerUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvorum.controller.api.MAX_RECORDS_PER_USER_OPERATION", PIECE_RECORDS)
    pauses, result = decided(controller, UNREGISTRATION)
    assert pauses == 1
    assert isinstance(result.response, UnregisterBrokerResponse)
    assert result.response.error_code == ErrorCode.POLICY_VIOLATION
    assert result.records == ()
