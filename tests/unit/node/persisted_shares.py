"""A persister whose share coordinators are made up, at a time that a test moves."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeVar, cast

from immutables import Map

from kvorum.broker.coordinators import coordinator_of_key
from kvorum.coordinator.coordinator_type import CoordinatorType
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.cluster_image import BrokerRegistration, ClusterImage, Endpoint
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration, Partitions
from kvorum.metadata.topic_names import SHARE_GROUP_STATE_TOPIC
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.node.broker.own_broker import OwnBroker
from kvorum.node.broker.share_coordinator.default_state_persister import DefaultStatePersister
from kvorum.node.coroutines import Pulse, Task, Wait
from kvorum.node.outbound.client_connection import ConnectionLostError, NoCommonVersionError
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from kvorum.wire.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from kvorum.wire.primitives import Message

Response = TypeVar("Response", bound=Message)
ME: Final = 1
OTHER: Final = 2
LISTENER: Final = "PLAINTEXT"
STATE_ID: Final = b"state-topic-id.."
TOPIC_ID: Final = b"the-topic-called"
DIRECTORY: Final = b"d" * 16
GROUP: Final = "g"
ALL_TRIES_MS: Final = 60_000
NOTHING_MS: Final = 0.0
MIDDLE: Final = 0.5
"""Drawn where the jitter is to be nothing."""
Answer = Callable[[int, Message], Message | Exception]
"""Makes the answer of a broker, by its id, to a request."""


def registered(broker_id: int) -> BrokerRegistration:
    return BrokerRegistration(
        id=broker_id,
        epoch=1,
        incarnation_id=DIRECTORY,
        listeners=(Endpoint(LISTENER, "127.0.0.1", broker_id, 0),),
        supported_features=Map(),
        rack=None,
        is_fenced=False,
        is_in_controlled_shutdown=False,
        is_migrating_zk_broker=False,
        directories=(DIRECTORY,),
        cordoned_directories=None,
    )


def image(*leaders: int) -> MetadataImage:
    """Return a cluster in which partitions of ``__share_group_state`` have these leaders."""
    registrations = Partitions(
        tuple(PartitionRegistration((one,), (DIRECTORY,), (one,), leader=one) for one in leaders)
    )
    topic = TopicImage(SHARE_GROUP_STATE_TOPIC, STATE_ID, registrations)
    cluster = ClusterImage(brokers=Map({one: registered(one) for one in (ME, OTHER)}))
    if not leaders:
        return MetadataImage(cluster=cluster)
    topics = TopicsImage(Map({STATE_ID: topic}), Map({topic.name: STATE_ID}))
    return MetadataImage(cluster=cluster, topics=topics)


def partition_of(current: MetadataImage, node_id: int) -> int:
    """Return a partition of the topic whose state a broker coordinates."""
    for partition in range(100):
        key = SharePartitionKey(GROUP, TOPIC_ID, partition).coordinator_key
        node = coordinator_of_key(current, CoordinatorType.SHARE, key, LISTENER)
        if node is not None and node.node_id == node_id:
            return partition
    raise AssertionError(f"broker {node_id} coordinates nothing")


@dataclass
class Connection:
    """A connection to one of the brokers."""

    node_id: int
    answer: Answer
    held: Pulse | None
    has_versions: bool
    client_id: str = "persister"
    peer_versions: Mapping[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])

    def version_for(self, message: type[Message]) -> int:
        if not self.has_versions:
            raise NoCommonVersionError
        return message.MAX_VERSION

    async def send(
        self, message: Message, kind: type[Response], *, timeout_ms: int, version: int | None = None
    ) -> Response:
        del timeout_ms, version
        answer = self.answer(self.node_id, message)
        if self.held is not None:
            await self.held.next()
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, kind)
        return answer


class PersistedShares:
    """A persister, and the requests that brokers get from it, by their ids."""

    request_timeout_ms = 1000
    client_id = "persister"

    def __init__(self, current: MetadataImage, answer: Answer) -> None:
        self.image = current
        self.requests: list[tuple[int, Any]] = []
        self.created: list[str] = []
        self.held: Pulse | None = None
        self.has_versions = True
        self.events = Events()
        self.runtime = SimulatedRuntime(
            self.events, NodeClock(self.events), Random(1), turn=lambda callback: callback()
        )
        self.answer = answer
        own: Any = self._connection(ME)
        own.broker_id = ME
        self.persister = DefaultStatePersister(
            self,
            cast("OwnBroker", own),
            LISTENER,
            image=lambda: self.image,
            create_topic=self._create_topic,
            draw=lambda: MIDDLE,
            runtime=self.runtime,
        )

    async def to(self, node_id: int) -> Connection:
        assert node_id != ME
        return self._connection(node_id)

    def close(self) -> None:
        pass

    def hold(self) -> Pulse:
        """Have answers wait for the beat of the pulse that is returned."""
        self.held = Pulse(self.runtime)
        return self.held

    def run(self, elapsed_ms: float = NOTHING_MS) -> None:
        """Let time pass, with what is due in it."""
        end_ms = self.events.now_ms + elapsed_ms
        while (callback := self.events.take_next(end_ms)) is not None:
            callback()

    def written(self, *partitions: int, group_id: str = GROUP) -> list[Any]:
        """Write; return a list that gets the response when it is known."""
        parts = [WriteShareGroupStateRequest.PartitionData(one) for one in partitions]
        topic = WriteShareGroupStateRequest.WriteStateData(TOPIC_ID, parts)
        return self._asked(
            self.persister.write_state(WriteShareGroupStateRequest(group_id, [topic]))
        )

    def deleted(self, partition: int) -> list[Any]:
        """Delete; return a list that gets the response when it is known."""
        parts = [DeleteShareGroupStateRequest.PartitionData(partition)]
        topic = DeleteShareGroupStateRequest.DeleteStateData(TOPIC_ID, parts)
        return self._asked(
            self.persister.delete_state(DeleteShareGroupStateRequest(GROUP, [topic]))
        )

    def _asked(self, question: Coroutine[Wait[Any], Any, Any]) -> list[Any]:
        answers: list[Any] = []
        Task(question, answers.append)
        self.run()
        return answers

    def _connection(self, node_id: int) -> Connection:
        return Connection(node_id, self._noted, self.held, self.has_versions)

    def _noted(self, node_id: int, request: Message) -> Message | Exception:
        self.requests.append((node_id, request))
        return self.answer(node_id, request)

    async def _create_topic(self, name: str) -> None:
        self.created.append(name)
        self.image = image(OTHER)


def results(code: ErrorCode = ErrorCode.NONE, message: str | None = None) -> Answer:
    """Return an answer with a code for each share partition."""

    def answer(_node_id: int, request: Message) -> Message:
        if isinstance(request, DeleteShareGroupStateRequest):
            gone = DeleteShareGroupStateResponse
            deleted = [gone.PartitionResult(one.partition) for one in request.topics[0].partitions]
            return gone([gone.DeleteStateResult(TOPIC_ID, deleted)])
        assert isinstance(request, WriteShareGroupStateRequest)
        kept = WriteShareGroupStateResponse
        written = [
            kept.PartitionResult(one.partition, code, message)
            for one in request.topics[0].partitions
        ]
        return kept([kept.WriteStateResult(TOPIC_ID, written)])

    return answer


def lost(_node_id: int, _request: Message) -> Exception:
    """Answer nothing: the connection breaks."""
    return ConnectionLostError("gone")


def codes(answers: list[Any]) -> dict[int, int]:
    """Return the code for each partition of the one response."""
    (response,) = answers
    assert not isinstance(response, Exception), response
    return {one.partition: one.error_code for one in response.results[0].partitions}
