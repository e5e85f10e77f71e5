"""The way of dead letters: the brokers that get them, in which requests, and when once more."""

from random import Random
from typing import Any, Final, cast

import pytest
from immutables import Map
from tests.unit.broker.fetcher.replicas import Replicas
from tests.unit.node.persisted_shares import (
    ALL_TRIES_MS,
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

from kvorum.broker.dead_letter_queue.dead_letter_queue_error import DeadLetterQueueError
from kvorum.broker.dead_letter_queue.dead_letter_records import DeadLetterWriter
from kvorum.broker.share_partition.state_write import DeadLetter, DeadLetterCause
from kvorum.broker.topic_log_configs import TopicConfigs
from kvorum.metadata.api import RequestError
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.configs_image import ConfigsImage, ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration, Partitions
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.node.broker.dead_letter_queue.dead_letter_metrics import DeadLetterMetrics
from kvorum.node.broker.dead_letter_queue.dead_letter_sender import DeadLetterSender
from kvorum.node.broker.dead_letter_queue.share_group_dlq_manager import (
    ATTEMPTS_MAX,
    ShareGroupDLQManager,
)
from kvorum.node.broker.own_broker import OwnBroker
from kvorum.node.coroutines import Pulse, Task
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records import Record, read_batches

GROUP: Final = "group"
QUEUE: Final = "dlq.orders"
QUEUE_ID: Final = b"the-id-of-a-queu"
NOTHING_MS: Final = 0.0
NO_LEADER: Final = -1
Configs = dict[tuple[int, str], Map[str, str]]


def configs(*, copied: bool = False, size_max: int | None = None, created: bool = False) -> Configs:
    """Return the configurations of the group, of its queue, and of all brokers."""
    own = {"errors.deadletterqueue.group.enable": "true"}
    if size_max is not None:
        own["max.message.bytes"] = str(size_max)
    group = {
        "errors.deadletterqueue.topic.name": QUEUE,
        "errors.deadletterqueue.copy.record.enable": str(copied).lower(),
    }
    cluster = {"errors.deadletterqueue.auto.create.topics.enable": str(created).lower()}
    return {
        (int(ResourceType.GROUP), GROUP): Map(group),
        (int(ResourceType.TOPIC), QUEUE): Map(own),
        (int(ResourceType.BROKER), ""): Map(cluster),
    }


def image(given: Configs, *leaders: int) -> MetadataImage:
    """Return a cluster in which the partitions of the queue have these leaders; none without."""
    cluster = ClusterImage(brokers=Map({one: registered(one) for one in (ME, OTHER)}))
    known = ConfigsImage(Map(given))
    if not leaders:
        return MetadataImage(cluster=cluster, configs=known)
    registrations = Partitions(
        tuple(
            PartitionRegistration((ME, OTHER), (DIRECTORY, DIRECTORY), (ME, OTHER), leader=one)
            for one in leaders
        )
    )
    topic = TopicImage(QUEUE, QUEUE_ID, registrations)
    topics = TopicsImage(Map({QUEUE_ID: topic}), Map({QUEUE: QUEUE_ID}))
    return MetadataImage(cluster=cluster, topics=topics, configs=known)


class Brokers:
    """A manager on broker 1, which leads a partition, and the requests that brokers get from it."""

    request_timeout_ms = 1000
    client_id = "dead letters"

    def __init__(self, current: MetadataImage, answer: Answer) -> None:
        self.image = current
        self.answer = answer
        self.requests: list[tuple[int, ProduceRequest]] = []
        self.created: list[str] = []
        self.creation_error: ErrorCode = ErrorCode.NONE
        self.events = Events()
        self.held: Pulse | None = None
        self.runtime = SimulatedRuntime(
            self.events, NodeClock(self.events), Random(1), turn=lambda callback: callback()
        )
        self.replicas = Replicas()
        self.replicas.lead(ME)
        self.leader = self.replicas.all[ME]
        own: Any = self._connection(ME)
        own.broker_id = ME
        self.manager = ShareGroupDLQManager(
            DeadLetterSender(self, cast("OwnBroker", own), self.runtime),
            LISTENER,
            image=lambda: self.image,
            configs=TopicConfigs(ME, {}),
            create_topic=self._create_topic,
            threads=self.runtime,
            draw=lambda: MIDDLE,
            runtime=self.runtime,
        )

    async def to(self, node_id: int) -> Connection:
        assert node_id != ME
        return self._connection(node_id)

    def close(self) -> None:
        pass

    def run(self, elapsed_ms: float = NOTHING_MS) -> None:
        """Let time pass, with what is due in it."""
        end_ms = self.events.now_ms + elapsed_ms
        while (callback := self.events.take_next(end_ms)) is not None:
            callback()

    def enqueued(self, first_offset: int, last_offset: int, *, partition: int = 0) -> list[Any]:
        """Write dead letters; return a list that gets None once they are written, or the error."""
        batch: Any = None
        letter = DeadLetter(first_offset, last_offset, 1, DeadLetterCause.CLIENT_REJECT, batch)
        writer = DeadLetterWriter(GROUP, TopicPartition("orders", partition), letter)
        ends: list[Any] = []
        Task(self.manager.enqueue(writer, self.leader.partition), ends.append)
        self.run()
        return ends

    @property
    def records(self) -> list[Record]:
        """The records of all requests, in order."""
        return [
            record
            for _, request in self.requests
            for topic in request.topic_data
            for data in topic.partition_data
            for batch in read_batches(memoryview(cast("bytes", data.records)))
            for record in batch.records()
        ]

    @property
    def offsets(self) -> list[int]:
        """The offsets of which the records tell, in order."""
        headers = [dict(record.headers) for record in self.records]
        return [int(one["__dlq.errors.offset"] or b"") for one in headers]

    def _connection(self, node_id: int) -> Connection:
        return Connection(node_id, self._noted, self.held, has_versions=True)

    def _noted(self, node_id: int, request: Message) -> Message | Exception:
        assert isinstance(request, ProduceRequest)
        self.requests.append((node_id, request))
        return self.answer(node_id, request)

    async def _create_topic(self, name: str) -> None:
        self.created.append(name)
        if self.creation_error is not ErrorCode.NONE:
            raise RequestError.with_default_message(self.creation_error)
        self.image = image(configs(created=True), OTHER)


def answers(*codes: ErrorCode) -> Answer:
    """Return answers with one code after the other, the last one again and again."""
    left = list(codes)

    def answer(_: int, request: Message) -> Message:
        assert isinstance(request, ProduceRequest)
        code = left.pop(0) if len(left) > 1 else left[0]
        result = ProduceResponse.PartitionProduceResponse
        return ProduceResponse(
            [
                ProduceResponse.TopicProduceResponse(
                    topic_id=topic.topic_id,
                    partition_responses=[result(one.index, code) for one in topic.partition_data],
                )
                for topic in request.topic_data
            ]
        )

    return answer


WRITTEN = answers(ErrorCode.NONE)


@pytest.mark.parametrize(("partition", "leader"), [(2, ME), (3, OTHER)])
def test_a_partition_has_one_of_the_queue_whose_leader_is_asked(
    partition: int, leader: int
) -> None:
    brokers = Brokers(image(configs(), ME, OTHER), WRITTEN)
    assert brokers.enqueued(4, 5, partition=partition) == [None]
    ((node_id, request),) = brokers.requests
    assert node_id == leader
    (topic,) = request.topic_data
    assert (topic.name, topic.topic_id, request.acks) == (QUEUE, QUEUE_ID, -1)
    assert [one.index for one in topic.partition_data] == [partition % 2]
    assert brokers.offsets == [4, 5]


@pytest.mark.parametrize(("copied", "value"), [(True, b"b"), (False, None)])
def test_a_record_is_copied_where_the_group_wants_that(copied: bool, value: bytes | None) -> None:
    brokers = Brokers(image(configs(copied=copied), OTHER), WRITTEN)
    brokers.leader.write(b"a", b"b", b"c")
    brokers.replicas.copy(1, 2, 3)
    assert brokers.enqueued(1, 1) == [None]
    (record,) = brokers.records
    assert record.value == value


def test_records_that_the_log_lacks_are_written_without_a_copy() -> None:
    brokers = Brokers(image(configs(copied=True), OTHER), WRITTEN)
    assert brokers.enqueued(0, 1) == [None]
    assert [record.value for record in brokers.records] == [None, None]


def test_what_one_batch_cannot_take_comes_with_the_next() -> None:
    brokers = Brokers(image(configs(size_max=600), OTHER), WRITTEN)
    assert brokers.enqueued(0, 9) == [None]
    assert brokers.offsets == list(range(10))
    assert len(brokers.requests) > 2
    counts = DeadLetterMetrics(written_record_count=10, produce_count=len(brokers.requests))
    assert brokers.manager.metrics == {GROUP: counts}


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID])
def test_a_leader_that_is_there_later_is_waited_for(code: ErrorCode) -> None:
    brokers = Brokers(image(configs(), OTHER), answers(code, ErrorCode.NONE))
    ends = brokers.enqueued(0, 0)
    assert not ends
    brokers.image = image(configs(), ME)
    brokers.run(ALL_TRIES_MS)
    assert ends == [None]
    assert [node_id for node_id, _ in brokers.requests] == [OTHER, ME]
    counts = DeadLetterMetrics(written_record_count=1, produce_count=2)
    assert brokers.manager.metrics == {GROUP: counts}


def test_a_queue_without_a_leader_is_waited_for() -> None:
    brokers = Brokers(image(configs(), NO_LEADER), WRITTEN)
    ends = brokers.enqueued(0, 0)
    brokers.image = image(configs(), OTHER)
    brokers.run(ALL_TRIES_MS)
    assert ends == [None]


@pytest.mark.parametrize(
    "answer",
    [
        lost,
        answers(ErrorCode.NOT_ENOUGH_REPLICAS),
        answers(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
    ],
)
def test_tries_have_an_end(answer: Answer) -> None:
    brokers = Brokers(image(configs(), OTHER), answer)
    ends = brokers.enqueued(0, 0)
    brokers.run(ALL_TRIES_MS)
    assert len(brokers.requests) == ATTEMPTS_MAX
    (error,) = ends
    assert isinstance(error, DeadLetterQueueError)
    counts = DeadLetterMetrics(produce_count=ATTEMPTS_MAX, failed_produce_count=1)
    assert brokers.manager.metrics == {GROUP: counts}


def test_a_refusal_that_will_not_pass_is_final() -> None:
    brokers = Brokers(image(configs(), OTHER), answers(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    (error,) = brokers.enqueued(0, 0)
    assert str(error) == ErrorCode.TOPIC_AUTHORIZATION_FAILED.default_message
    assert len(brokers.requests) == 1


def test_a_queue_is_created_once_where_that_is_allowed() -> None:
    brokers = Brokers(image(configs(created=True)), WRITTEN)
    ends = [brokers.enqueued(0, 0), brokers.enqueued(1, 1)]
    brokers.run()
    assert ends == [[None], [None]]
    assert brokers.created == [QUEUE]


def test_a_queue_is_not_created_elsewhere() -> None:
    brokers = Brokers(image(configs()), WRITTEN)
    (error,) = brokers.enqueued(0, 0)
    assert "there is no topic dlq.orders" in str(error)
    assert not brokers.created


@pytest.mark.parametrize(
    ("code", "tries"),
    [(ErrorCode.TOPIC_ALREADY_EXISTS, ATTEMPTS_MAX), (ErrorCode.POLICY_VIOLATION, 1)],
)
def test_a_queue_that_cannot_be_created_is_tried_again_if_that_may_help(
    code: ErrorCode, tries: int
) -> None:
    brokers = Brokers(image(configs(created=True)), WRITTEN)
    brokers.creation_error = code
    ends = brokers.enqueued(0, 0)
    brokers.run(ALL_TRIES_MS)
    (error,) = ends
    assert str(error) == code.default_message
    assert len(brokers.created) == tries
    assert not brokers.manager.metrics, "nothing was sent"


def test_after_its_end_nothing_is_sent_and_who_waits_is_refused() -> None:
    brokers = Brokers(image(configs(), OTHER), WRITTEN)
    brokers.held = Pulse(brokers.runtime)
    under_way = brokers.enqueued(0, 0)
    waiting = brokers.enqueued(1, 1)
    brokers.manager.close()
    brokers.run(ALL_TRIES_MS)
    late = brokers.enqueued(2, 2)
    for ends in (under_way, waiting, late):
        (error,) = ends
        assert isinstance(error, DeadLetterQueueError)
    assert brokers.offsets == [0]
