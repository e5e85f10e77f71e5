"""The ends of partitions, asked of their leaders."""

from collections.abc import Mapping
from random import Random
from typing import Any, Final, cast

import pytest
from immutables import Map
from tests.unit.node.persisted_shares import (
    DIRECTORY,
    LISTENER,
    ME,
    MIDDLE,
    OTHER,
    Answer,
    Connection,
    lost,
    registered,
)

from kvorum.groups.offsets.store import TopicPartition
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration, Partitions
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.node.broker.group_coordinator.network_partition_metadata_client import (
    BACKOFF_MAX_MS,
    NetworkPartitionMetadataClient,
)
from kvorum.node.broker.group_coordinator.partition_metadata_client import LatestOffset
from kvorum.node.broker.own_broker import OwnBroker
from kvorum.node.coroutines import Pulse, Task
from kvorum.node.handlers.list_offsets import CONSUMER_ID
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import ROUNDING_MS, SimulatedRuntime
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.primitives import Message

NONE, LOST = ErrorCode.NONE, ErrorCode.NETWORK_EXCEPTION
NOBODY: Final = -1
TOPIC: Final = "orders"
OTHER_TOPIC: Final = "payments"
LATEST: Final = -1
PAUSES_MS: Final = (2_000, 4_000, 8_000, 16_000, 30_000)
MARGIN_MS: Final = 1
Ends = Mapping[TopicPartition, LatestOffset]
_Answered = ListOffsetsResponse.ListOffsetsTopicResponse
_End = ListOffsetsResponse.ListOffsetsPartitionResponse


def image(**leaders: tuple[int, ...]) -> MetadataImage:
    """Return a cluster of two brokers with topics, by the leaders of their partitions."""
    topics = [
        TopicImage(
            name,
            name.ljust(16).encode(),
            Partitions(
                tuple(PartitionRegistration((ME,), (DIRECTORY,), (ME,), leader=one) for one in each)
            ),
        )
        for name, each in leaders.items()
    ]
    return MetadataImage(
        cluster=ClusterImage(brokers=Map({one: registered(one) for one in (ME, OTHER)})),
        topics=TopicsImage(
            Map({one.id: one for one in topics}), Map({one.name: one.id for one in topics})
        ),
    )


def end_of(node_id: int, where: TopicPartition) -> int:
    return 100 * node_id + where.partition


def asked(request: ListOffsetsRequest) -> list[TopicPartition]:
    """Return the partitions whose end is asked for, as consumers ask for it."""
    assert request.replica_id == CONSUMER_ID
    parts = [(topic.name, one) for topic in request.topics for one in topic.partitions]
    assert {one.timestamp for _, one in parts} == {LATEST}
    return [TopicPartition(name, one.partition_index) for name, one in parts]


def ends(node_id: int, request: Message) -> Message:
    """Answer with a different end for each partition."""
    assert isinstance(request, ListOffsetsRequest)
    topics = [
        _Answered(
            topic.name,
            [
                _End(
                    one.partition_index,
                    offset=end_of(node_id, TopicPartition(topic.name, one.partition_index)),
                )
                for one in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return ListOffsetsResponse(topics=topics)


class Asking:
    """A client whose leaders are made up, at a time that a test moves."""

    request_timeout_ms = 1000
    client_id = "partition-metadata"

    def __init__(self, current: MetadataImage, answer: Answer = ends) -> None:
        self.answer = answer
        self.has_versions = True
        self.drawn = MIDDLE
        self.is_closed = False
        self.held: Pulse | None = None
        self.requests: list[tuple[int, Any]] = []
        self.connected: list[int] = []
        self.events = Events()
        self.runtime = SimulatedRuntime(
            self.events, NodeClock(self.events), Random(1), turn=lambda callback: callback()
        )
        own: Any = self._connection(ME)
        own.broker_id = ME
        self.client = NetworkPartitionMetadataClient(
            self,
            cast("OwnBroker", own),
            LISTENER,
            image=lambda: current,
            draw=lambda: self.drawn,
            runtime=self.runtime,
        )

    async def to(self, node_id: int) -> Connection:
        self.connected.append(node_id)
        return self._connection(node_id)

    def close(self) -> None:
        self.is_closed = True

    def ask(self, *partitions: TopicPartition) -> list[Ends]:
        """Ask; return a list that gets the answer when it is known."""
        answers: list[Any] = []
        Task(self.client.list_latest_offsets(partitions), answers.append)
        self.pass_time()
        return answers

    def pass_time(self, elapsed_ms: float = 0.0) -> None:
        self.events.run_until(self.events.now_ms + elapsed_ms)

    def _connection(self, node_id: int) -> Connection:
        return Connection(node_id, self._noted, self.held, self.has_versions)

    def _noted(self, node_id: int, request: Message) -> Message | Exception:
        self.requests.append((node_id, request))
        return self.answer(node_id, request)


def of(topic: str, *partitions: int) -> list[TopicPartition]:
    return [TopicPartition(topic, one) for one in partitions]


def test_each_leader_is_asked_once_for_all_of_its_partitions() -> None:
    leaders = {(TOPIC, 0): ME, (TOPIC, 1): OTHER, (TOPIC, 2): OTHER, (OTHER_TOPIC, 0): OTHER}
    asking = Asking(image(orders=(ME, OTHER, OTHER), payments=(OTHER,)))
    where = of(TOPIC, 0, 1, 2) + of(OTHER_TOPIC, 0)
    assert asking.ask(*where) == [
        {one: LatestOffset(end_of(leaders[one.topic, one.partition], one), NONE) for one in where}
    ]
    assert [(node_id, asked(request)) for node_id, request in asking.requests] == [
        (ME, of(TOPIC, 0)),
        (OTHER, of(TOPIC, 1, 2) + of(OTHER_TOPIC, 0)),
    ]
    assert asking.connected == [OTHER]


def test_a_partition_without_a_leader_is_not_asked_for() -> None:
    asking = Asking(image(orders=(ME, NOBODY)))
    (found,) = asking.ask(*of(TOPIC, 0, 1))
    assert found == {
        TopicPartition(TOPIC, 0): LatestOffset(100, NONE),
        TopicPartition(TOPIC, 1): LatestOffset(-1, ErrorCode.LEADER_NOT_AVAILABLE),
    }
    assert [asked(request) for _, request in asking.requests] == [of(TOPIC, 0)]


def test_a_leader_that_is_lost_is_asked_again() -> None:
    asking = Asking(image(orders=(OTHER, ME)), answer=lost)
    answers = asking.ask(*of(TOPIC, 0))
    asking.pass_time(PAUSES_MS[0] + MARGIN_MS)
    asking.answer = ends
    assert answers == []
    asking.pass_time(PAUSES_MS[1])
    assert answers == [{TopicPartition(TOPIC, 0): LatestOffset(200, NONE)}]


@pytest.mark.parametrize(
    ("drawn", "spread"), [(MIDDLE, 1), (0.0, 0.8), (1.0, 1.2)], ids=["middle", "least", "most"]
)
def test_a_leader_that_stays_lost_has_no_end_to_tell(drawn: float, spread: float) -> None:
    asking = Asking(image(orders=(OTHER, ME)), answer=lost)
    asking.drawn = drawn
    answers = asking.ask(*of(TOPIC, 0))
    for tries, pause_ms in enumerate(PAUSES_MS, 1):
        asking.pass_time(min(pause_ms * spread, BACKOFF_MAX_MS) - MARGIN_MS)
        assert (len(answers), len(asking.requests)) == (0, tries)
        asking.pass_time(MARGIN_MS + ROUNDING_MS * 10)
    assert answers == [{TopicPartition(TOPIC, 0): LatestOffset(-1, LOST)}]
    assert len(asking.requests) == 1 + len(PAUSES_MS)


def test_a_leader_of_other_versions_is_not_asked_again() -> None:
    asking = Asking(image(orders=(OTHER,)))
    asking.has_versions = False
    unknown = LatestOffset(-1, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert asking.ask(*of(TOPIC, 0)) == [{TopicPartition(TOPIC, 0): unknown}]
    assert asking.requests == []


def test_a_partition_that_is_not_answered_is_unknown() -> None:
    def only_first(node_id: int, request: Message) -> Message:
        response = ends(node_id, request)
        assert isinstance(response, ListOffsetsResponse)
        del response.topics[0].partitions[1:]
        return response

    asking = Asking(image(orders=(OTHER, OTHER)), answer=only_first)
    unknown = LatestOffset(-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    first, second = of(TOPIC, 0, 1)
    assert asking.ask(first, second) == [{first: LatestOffset(200, NONE), second: unknown}]


def test_the_error_of_a_leader_is_passed_on() -> None:
    def refused(node_id: int, request: Message) -> Message:
        response = ends(node_id, request)
        assert isinstance(response, ListOffsetsResponse)
        (one,) = response.topics[0].partitions
        one.error_code, one.offset = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        return response

    asking = Asking(image(orders=(OTHER,)), answer=refused)
    not_leader = LatestOffset(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert asking.ask(*of(TOPIC, 0)) == [{TopicPartition(TOPIC, 0): not_leader}]


def test_one_request_is_under_way_to_a_leader() -> None:
    asking = Asking(image(orders=(OTHER, OTHER)))
    asking.held = Pulse(asking.runtime)
    first, second = asking.ask(*of(TOPIC, 0)), asking.ask(*of(TOPIC, 1))
    assert len(asking.requests) == 1
    asking.held.beat()
    asking.pass_time()
    assert (len(first), len(second), len(asking.requests)) == (1, 0, 2)
    asking.held.beat()
    asking.pass_time()
    assert len(second) == 1


def test_its_connections_are_closed_with_it() -> None:
    asking = Asking(image())
    asking.client.close()
    assert asking.is_closed
