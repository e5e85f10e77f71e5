"""The state of share partitions over the wire, with coordinators that other brokers are."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic, wait_for_topics, wait_until_led
from tests.support.waiting import wait_for

from kvorum.coordinator.coordinator_type import CoordinatorType
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kvorum.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kvorum.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from kvorum.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

TOPIC: Final = "t"
PARTITIONS: Final = 20
"""So many that a leader without the state of its partition is certain."""
GROUP: Final = "g"
MEMBER: Final = "AAECAwQFBgcICQoLDA0ODw"
STATE_TOPIC: Final = {
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=1, brokers=2, overrides=STATE_TOPIC) as cluster:
        with RawClient(cluster.controller_servers) as controller:
            create_topic(controller, TOPIC, PARTITIONS)
        for address in cluster.bootstrap_servers.split(","):
            wait_for_topics(address, TOPIC)
        yield cluster


class Places:
    """The brokers that lead the topic's partitions, and those that coordinate their state."""

    def __init__(self, cluster: Cluster) -> None:
        self._address = cluster.bootstrap_servers.split(",")[0]
        with RawClient(self._address) as client:
            request = MetadataRequest([MetadataRequestTopic(name=TOPIC)])
            described = client.ask(request, MetadataResponse, 12)
        (topic,) = described.topics
        brokers = {one.node_id: f"{one.host}:{one.port}" for one in described.brokers}
        self.topic_id = topic.topic_id
        self.leaders = {one.partition_index: brokers[one.leader_id] for one in topic.partitions}

    def coordinator(self, partition: int) -> str:
        """Return the address of the coordinator, once it has loaded the state."""

        def loaded() -> str | None:
            key = SharePartitionKey(GROUP, self.topic_id, partition).coordinator_key
            request = FindCoordinatorRequest("", CoordinatorType.SHARE.value, [key])
            with RawClient(self._address) as client:
                (found,) = client.ask(request, FindCoordinatorResponse, 6).coordinators
            if found.error_code != ErrorCode.NONE:
                return None
            address = f"{found.host}:{found.port}"
            is_loaded = self.summary(address, partition).error_code == ErrorCode.NONE
            return address if is_loaded else None

        return wait_for(loaded, f"partition {partition} has a coordinator")

    def coordinated_elsewhere(self) -> int:
        """Return a partition whose leader does not coordinate its state."""
        return next(one for one in self.leaders if self.coordinator(one) != self.leaders[one])

    def initialize(self, address: str, partition: int, start_offset: int) -> Any:
        part = InitializeShareGroupStateRequest.PartitionData(partition, 0, start_offset)
        topic = InitializeShareGroupStateRequest.InitializeStateData(self.topic_id, [part])
        request = InitializeShareGroupStateRequest(GROUP, [topic])
        with RawClient(address) as client:
            answered = client.ask(request, InitializeShareGroupStateResponse, 0)
        return answered.results[0].partitions[0]

    def summary(self, address: str, partition: int) -> Any:
        part = ReadShareGroupStateSummaryRequest.PartitionData(partition)
        topic = ReadShareGroupStateSummaryRequest.ReadStateSummaryData(self.topic_id, [part])
        request = ReadShareGroupStateSummaryRequest(GROUP, [topic])
        with RawClient(address) as client:
            answered = client.ask(request, ReadShareGroupStateSummaryResponse, 1)
        return answered.results[0].partitions[0]


def test_only_its_coordinator_keeps_the_state(cluster: Cluster) -> None:
    places = Places(cluster)
    coordinator = places.coordinator(0)
    (other,) = set(cluster.bootstrap_servers.split(",")) - {coordinator}
    refused = places.initialize(other, 0, 5)
    assert refused.error_code == ErrorCode.NOT_COORDINATOR
    assert places.initialize(coordinator, 0, 5).error_code == ErrorCode.NONE
    assert places.summary(coordinator, 0).start_offset == 5


def test_a_leader_has_the_state_of_a_coordinator_on_another_broker(cluster: Cluster) -> None:
    places = Places(cluster)
    partition = places.coordinated_elsewhere()
    coordinator = places.coordinator(partition)
    assert places.initialize(coordinator, partition, 0).error_code == ErrorCode.NONE
    wanted = ShareFetchRequest.FetchPartition(partition)
    request = ShareFetchRequest(
        GROUP,
        MEMBER,
        max_bytes=1 << 20,
        max_records=10,
        batch_size=10,
        topics=[ShareFetchRequest.FetchTopic(places.topic_id, [wanted])],
    )
    with RawClient(places.leaders[partition]) as client:
        wait_until_led(client, TOPIC, partition=partition)
        answered = client.ask(request, ShareFetchResponse, 2)
    assert answered.error_code == ErrorCode.NONE
    codes = [one.error_code for topic in answered.responses for one in topic.partitions]
    assert codes in ([], [ErrorCode.NONE])
