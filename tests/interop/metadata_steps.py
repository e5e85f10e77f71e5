"""Steps with images of made-up metadata: topics come and go, groups are configured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

from kvorum.metadata.record_frame import encode_record
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import uuid_to_text

RACKS: Final = ("r0", "r1", "r1", None)
"""The racks of the brokers 0 to 3."""
GROUP_RESOURCE: Final = 32
GROUP_CONFIGS: Final[Mapping[str, tuple[str, ...]]] = {
    "consumer.session.timeout.ms": ("30000", "50000", "60000"),
    "consumer.heartbeat.interval.ms": ("6000", "20000"),
    "consumer.assignment.interval.ms": ("0", "500", "5000", "20000"),
}
"""Values of the configuration of a consumer group, within the bounds of the broker and not."""
NAMES: Final = ("one", "two", "three", "four", "Five", "-six_6.", "hidden")


@dataclass
class Topic:
    name: str
    topic_id: bytes
    replicas: list[list[int]] = field(default_factory=list[list[int]])


class MetadataSteps:
    """A made-up metadata log; each call returns the line of a step that publishes an image."""

    def __init__(
        self, random: Random, group_configs: Mapping[str, tuple[str, ...]] = GROUP_CONFIGS
    ) -> None:
        self._random = random
        self._group_configs = group_configs
        self._offset = 0
        self.topics: dict[str, Topic] = {}

    def brokers(self) -> str:
        """Return the step that registers the brokers."""
        return self._image(
            [
                RegisterBrokerRecord(broker_id=index, incarnation_id=bytes(15) + b"b", rack=rack)
                for index, rack in enumerate(RACKS)
            ]
        )

    def topics_change(self) -> tuple[str, list[Topic]]:
        """Return a step in which one or two topics change, and the deleted topics."""
        random = self._random
        deleted: list[Topic] = []
        records: list[Message] = []
        for name in random.sample(NAMES, random.choice((1, 1, 1, 2))):
            topic = self.topics.get(name)
            if topic is None:
                records += self._create(name)
            elif random.random() < 0.4:
                records += self._grow(topic, random.choice((1, 2)))
            elif random.random() < 0.4:
                records.append(self._move(topic))
            else:
                deleted.append(self.topics.pop(name))
                records.append(RemoveTopicRecord(topic.topic_id))
                if random.random() < 0.3:
                    records += self._create(name)
        return self._image(records), deleted

    def other(self) -> str:
        """Return a step with an image in which no topic changes."""
        broker_id = self._random.choice((7, 8))
        return self._image([RegisterBrokerRecord(broker_id=broker_id, rack=None)])

    def group_config(self, group_id: str) -> str:
        """Return a step in which a group gets a configuration of its own, or loses it."""
        name = self._random.choice(list(self._group_configs))
        value = self._random.choice((*self._group_configs[name], None))
        return self._image([ConfigRecord(GROUP_RESOURCE, group_id, name, value)])

    def _create(self, name: str) -> list[Message]:
        random = self._random
        topic = self.topics[name] = Topic(name, random.randbytes(16))
        created: list[Message] = [TopicRecord(name, topic.topic_id)]
        return created + self._grow(topic, random.choice((1, 2, 3, 3, 6, 17)))

    def _grow(self, topic: Topic, count: int) -> list[Message]:
        records: list[Message] = []
        for _ in range(count):
            replicas = self._replicas()
            records.append(
                PartitionRecord(
                    partition_id=len(topic.replicas),
                    topic_id=topic.topic_id,
                    replicas=replicas,
                    isr=replicas,
                    leader=replicas[0],
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=[bytes(15) + b"d"] * len(replicas),
                )
            )
            topic.replicas.append(replicas)
        return records

    def _move(self, topic: Topic) -> Message:
        index = self._random.randrange(len(topic.replicas))
        record = PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id)
        if self._random.random() < 0.5:
            record.leader = topic.replicas[index][-1]
            return record
        replicas = topic.replicas[index] = self._replicas()
        record.replicas, record.isr, record.leader = replicas, replicas, replicas[0]
        record.directories = [bytes(15) + b"d"] * len(replicas)
        return record

    def _replicas(self) -> list[int]:
        return self._random.sample(range(len(RACKS)), self._random.choice((1, 2, 3)))

    def _image(self, records: list[Message]) -> str:
        self._offset += len(records)
        framed = " ".join(encode_record(one, one.MAX_VERSION).hex() for one in records)
        return f"image {self._offset} {framed}"


def deletion(topic: Topic, failure: int) -> str:
    """Return the step in which the shard drops the offsets of a deleted topic."""
    return f"topic {topic.name} {uuid_to_text(topic.topic_id)} {failure}"
