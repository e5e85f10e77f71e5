"""A topic that is created, used and deleted again and again, under one name but with other ids.

Brokers that were away meanwhile have the logs of a topic that is gone, in directories of the name
that the next one has. What holds for every topic holds for each of these.
"""

from random import Random
from typing import Final

from kvorum.broker.partition import ALL_IN_SYNC
from kvorum.metadata.topics_image import TopicImage
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.broker import Broker
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.clients import Consumer, Producer, Topic
from kvorum.simulation.partitions.settings import FAULTS_FROM_MS, QUIET_FROM_MS
from kvorum.simulation.partitions.topic_operator import TopicOperator

NAME: Final = "short-lived"
PARTITIONS_MAX: Final = 2
PRODUCER_ID: Final = 200
"""The id of a producer that begins again with each topic, of which no broker knows then."""
LIVES_MS: Final = 150, 1_500


class ShortLivedTopic:
    """The application that has the topic; `random` draws when it comes and goes."""

    def __init__(self, around: BrokerSurroundings, random: Random) -> None:
        self._around = around
        self._random = random
        self._operator = TopicOperator(around, NAME, random)
        self._topic: Topic | None = None
        self._producers: list[Producer] = []
        self._consumers: list[Consumer] = []
        self._deleted_from_ms = 0.0

    def step(self) -> None:
        """Create the topic, use it, or delete it once it has lived for a while."""
        image = self._operator.topic
        if self._topic is not None and (image is None or image.id != self._topic.id):
            self._around.ledger.counts["deleted topics"] += 1
            self._topic = None
        if image is None:
            if FAULTS_FROM_MS < self._around.now_ms < QUIET_FROM_MS:
                self._operator.create(self._random.randint(1, PARTITIONS_MAX))
            return
        if self._topic is None:
            self._begin(image)
        for producer in self._producers:
            producer.step()
        for consumer in self._consumers:
            consumer.step()
        if self._deleted_from_ms < self._around.now_ms < QUIET_FROM_MS:
            self._operator.delete(image)

    def check_end(self, brokers: list[Broker]) -> None:
        """Check that the last topic has what was written, and no broker one that is deleted."""
        checks = self._around.checks
        topics = self._around.committed_image.topics
        if self._topic is not None and self._topic.id in topics.by_id:
            for producer in self._producers:
                checks.demand(promises.WRITES_END, producer.describe(), holds=producer.is_idle)
        for broker in brokers:
            deleted = [one for one in broker.hosted_topics() if one not in topics.by_id]
            message = f"broker {broker.id}: {deleted}"
            checks.demand(promises.DELETED_ARE_GONE, message, holds=not deleted)

    def _begin(self, image: TopicImage) -> None:
        around = self._around
        self._topic = topic = Topic(NAME, image.id)
        around.ledger.counts["created topics"] += 1
        self._deleted_from_ms = around.now_ms + self._random.uniform(*LIVES_MS)
        indexes = [index for index, _ in image.partitions.in_order()]
        self._producers = [
            Producer(around, index, acks=ALL_IN_SYNC, producer_id=producer_id, topic=topic)
            for index in indexes
            for producer_id in (PRODUCER_ID + index, -1)
        ]
        self._consumers = [Consumer(around, index, topic=topic) for index in indexes]
