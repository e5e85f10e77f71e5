"""The creation of an internal topic, for which who needs it waits a little."""

from collections.abc import Callable
from random import Random
from typing import Any, cast

import pytest
from immutables import Map
from tests.unit.node.properties import BOTH

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import Partitions
from kvorum.metadata.topic_names import TRANSACTION_STATE_TOPIC
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.node.broker.auto_topic_creation_manager import (
    INTERNAL_TOPIC_TIMEOUT_MS,
    AutoTopicCreationManager,
)
from kvorum.node.config import NodeConfig
from kvorum.node.coroutines import Promise, Task
from kvorum.node.metadata_loader import PublishedImages
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime

TOPIC_ID = bytes(range(16))
WITH_TOPIC = MetadataImage(
    topics=TopicsImage(
        Map({TOPIC_ID: TopicImage(TRANSACTION_STATE_TOPIC, TOPIC_ID, Partitions(()))}),
        Map({TRANSACTION_STATE_TOPIC: TOPIC_ID}),
    )
)


class Broker:
    """A broker whose controller is asked for topics, and gives no answer; it publishes images."""

    def __init__(self) -> None:
        self.published = MetadataImage()
        self.asked = 0
        self.ends_ms: list[float] = []
        self.channel = self
        self._tell: list[Callable[[MetadataImage], None]] = []
        self._events = Events()
        self._runtime = SimulatedRuntime(
            self._events, NodeClock(self._events), Random(1), turn=lambda callback: callback()
        )
        itself = cast("Any", self)
        self.creator = AutoTopicCreationManager(
            NodeConfig.from_properties({**BOTH, "log.dirs": "/data"}),
            itself,
            PublishedImages(itself, self._runtime),
            self._runtime,
        )

    def subscribe(self, tell: Callable[[MetadataImage], None]) -> None:
        self._tell.append(tell)

    def send(self, *_: object) -> Any:
        self.asked += 1
        return Promise[Any](self._runtime).result()

    def create(self) -> None:
        Task(
            self.creator.create_internal(TRANSACTION_STATE_TOPIC),
            lambda _: self.ends_ms.append(self._events.now_ms),
        )

    def publish(self, image: MetadataImage) -> None:
        self.published = image
        for tell in self._tell:
            tell(image)

    def run_until(self, end_ms: float) -> None:
        while (callback := self._events.take_next(end_ms)) is not None:
            callback()


@pytest.fixture
def broker() -> Broker:
    return Broker()


def test_the_wait_ends_when_the_broker_knows_of_the_topic(broker: Broker) -> None:
    broker.create()
    broker.run_until(30)
    broker.publish(MetadataImage())
    broker.run_until(40)
    broker.publish(WITH_TOPIC)
    broker.run_until(10_000)
    assert broker.ends_ms == [40]


def test_the_wait_for_a_topic_that_does_not_come_is_short(broker: Broker) -> None:
    broker.create()
    broker.run_until(10_000)
    assert broker.ends_ms == pytest.approx([INTERNAL_TOPIC_TIMEOUT_MS])


def test_a_topic_that_is_being_created_is_asked_for_once(broker: Broker) -> None:
    broker.create()
    broker.create()
    broker.run_until(10_000)
    assert (broker.asked, len(broker.ends_ms)) == (1, 2)
