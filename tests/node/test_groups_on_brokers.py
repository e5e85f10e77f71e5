"""Groups over the wire, on brokers that share ``__consumer_offsets``, and the first group."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic, delete_topic
from tests.support.waiting import wait_for

from kvorum.node.broker.broker_metadata_publisher import BrokerMetadataPublisher
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kvorum.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

OFFSETS = "__consumer_offsets"
TOPIC = "committed"
GROUPS = [f"group-{number}" for number in range(8)]
TOPIC_RESOURCE = 2
LONGEST_STRING = 32_767
GROUP = "first"
MANY_PARTITIONS = {"offsets.topic.num.partitions": "50"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    overrides = {"offsets.topic.num.partitions": "50"}
    with Cluster(controllers=1, brokers=2, overrides=overrides) as cluster:
        with RawClient(cluster.controller_servers) as controller:
            create_topic(controller, TOPIC)
        yield cluster


def addresses(cluster: Cluster) -> list[str]:
    return cluster.bootstrap_servers.split(",")


def coordinators(address: str) -> dict[str, str]:
    """Return the address of each group's coordinator, as one broker tells it."""

    def found() -> dict[str, str] | None:
        with RawClient(address) as client:
            request = FindCoordinatorRequest("", 0, GROUPS)
            answered = client.ask(request, FindCoordinatorResponse, 4).coordinators
        if any(one.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE for one in answered):
            return None
        assert {(one.error_code, one.error_message) for one in answered} == {(ErrorCode.NONE, "")}
        return {one.key: f"{one.host}:{one.port}" for one in answered}

    places = wait_for(found, "there is a coordinator for every group")
    for group, place in places.items():
        # As in Kafka, a broker knows of its new partitions before it has made their logs.
        committed_once_loaded(place, group)
    return places


def committed_once_loaded(address: str, group: str) -> int:
    return wait_for(lambda: committed(address, group), f"{group} is loaded")


def commit(address: str, group: str, offset: int) -> ErrorCode:
    partition = OffsetCommitRequestPartition(0, offset)
    request = OffsetCommitRequest(
        group, topics=[OffsetCommitRequestTopic(TOPIC, partitions=[partition])]
    )
    with RawClient(address) as client:
        (topic,) = client.ask(request, OffsetCommitResponse, 9).topics
    return ErrorCode(topic.partitions[0].error_code)


def committed(address: str, group: str) -> int | None:
    """Return what a group has committed; None while that is not known."""
    asked = OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(TOPIC, b"", [0])])
    with RawClient(address) as client:
        (found,) = client.ask(OffsetFetchRequest(groups=[asked]), OffsetFetchResponse, 8).groups
    if found.error_code != ErrorCode.NONE:
        return None
    return found.topics[0].partitions[0].committed_offset


def test_every_broker_names_the_same_coordinators(cluster: Cluster) -> None:
    first, second = (coordinators(address) for address in addresses(cluster))
    assert first == second
    assert set(first.values()) == set(addresses(cluster)), "both brokers have their part"


def test_the_topic_of_offsets_is_made_as_kafka_makes_it(cluster: Cluster) -> None:
    address = addresses(cluster)[0]
    coordinators(address)
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        TOPIC_RESOURCE, OFFSETS, ["cleanup.policy", "compression.type", "segment.bytes"]
    )
    with RawClient(address) as client:
        described = client.ask(DescribeConfigsRequest([resource]), DescribeConfigsResponse, 4)
        request = MetadataRequest([MetadataRequestTopic(name=OFFSETS)])
        (topic,) = client.ask(request, MetadataResponse, 12).topics
    assert {one.name: one.value for one in described.results[0].configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    assert (topic.is_internal, len(topic.partitions)) == (True, 50)


def test_only_its_coordinator_takes_what_a_group_commits(cluster: Cluster) -> None:
    group, coordinator = next(iter(coordinators(addresses(cluster)[0]).items()))
    (other,) = set(addresses(cluster)) - {coordinator}
    assert commit(other, group, 1) is ErrorCode.NOT_COORDINATOR
    assert committed(other, group) is None
    assert commit(coordinator, group, 2) is ErrorCode.NONE
    assert committed(coordinator, group) == 2


@pytest.mark.slow
def test_offsets_outlive_a_broker_and_end_with_their_topic(cluster: Cluster) -> None:
    places = coordinators(addresses(cluster)[0])
    for number, (group, coordinator) in enumerate(places.items()):
        assert commit(coordinator, group, number) is ErrorCode.NONE
    for broker_id in (101, 102):
        cluster.kill(broker_id)
        cluster.restart(broker_id)
    places = coordinators(addresses(cluster)[0])
    for number, (group, coordinator) in enumerate(places.items()):
        assert committed_once_loaded(coordinator, group) == number
    with RawClient(cluster.controller_servers) as controller:
        delete_topic(controller, TOPIC)
    for group, coordinator in places.items():
        wait_for(lambda: committed(coordinator, group) == -1, "it is gone")  # noqa: B023 - called at once


def test_a_client_whose_id_leaves_no_room_for_a_members_is_refused(cluster: Cluster) -> None:
    (place,) = {coordinators(addresses(cluster)[0])[GROUPS[0]]}
    protocol = JoinGroupRequestProtocol("range", b"")
    request = JoinGroupRequest(
        GROUPS[0], 10_000, 10_000, protocol_type="consumer", protocols=[protocol]
    )
    with RawClient(place, client_id="x" * LONGEST_STRING) as client:
        answered = [client.ask(request, JoinGroupResponse, 9) for _ in range(2)]
    assert {(one.error_code, one.member_id) for one in answered} == {
        (ErrorCode.UNKNOWN_SERVER_ERROR, "")
    }


def found_at(client: RawClient) -> ErrorCode:
    asked = FindCoordinatorRequest("", 0, [GROUP])
    (found,) = client.ask(asked, FindCoordinatorResponse, 4).coordinators
    return ErrorCode(found.error_code)


def used_at(client: RawClient) -> ErrorCode:
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
