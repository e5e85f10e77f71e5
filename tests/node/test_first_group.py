"""The first group of a new cluster: its consumer gets its first record soon."""

from itertools import pairwise

import pytest
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.node.broker.broker_metadata_publisher import BrokerMetadataPublisher
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)

GROUP = "first"
MANY_PARTITIONS = {"offsets.topic.num.partitions": "50"}


def found_at(client: RawClient) -> ErrorCode:
    """Ask for the coordinator, and return the error."""
    asked = FindCoordinatorRequest("", 0, [GROUP])
    (found,) = client.ask(asked, FindCoordinatorResponse, 4).coordinators
    return ErrorCode(found.error_code)


def used_at(client: RawClient) -> ErrorCode:
    """Ask the coordinator for something, and return the error."""
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP)])
    (found,) = client.ask(asked, OffsetFetchResponse, 8).groups
    return ErrorCode(found.error_code)


class NeverCurrent:
    """An attribute that is False, whatever it is set to."""

    def __get__(self, publisher: object, owner: object) -> bool:
        return False

    def __set__(self, publisher: object, value: bool) -> None:
        pass


def test_the_coordinator_is_named_while_other_topics_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Metadata may change faster than logs are made, so that not all of them ever are."""
    monkeypatch.setattr(BrokerMetadataPublisher, "is_current", NeverCurrent(), raising=False)
    with (
        Cluster(overrides=MANY_PARTITIONS) as cluster,
        RawClient(cluster.bootstrap_servers) as client,
    ):
        wait_for(lambda: found_at(client) is ErrorCode.NONE, "the coordinator is named")
        assert used_at(client) is ErrorCode.NONE


def test_a_broker_that_is_named_as_coordinator_is_one() -> None:
    with (
        Cluster(overrides=MANY_PARTITIONS) as cluster,
        RawClient(cluster.bootstrap_servers) as client,
    ):
        errors: list[ErrorCode] = []

        def is_named() -> bool:
            errors.append(found_at(client))
            return errors[-1] is ErrorCode.NONE

        wait_for(is_named, "the broker is named as coordinator", otherwise=lambda: errors)
        assert used_at(client) is ErrorCode.NONE
    assert {before for before, _ in pairwise(errors)} <= {ErrorCode.COORDINATOR_NOT_AVAILABLE}
