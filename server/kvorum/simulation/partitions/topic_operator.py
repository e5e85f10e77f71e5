"""An operator who has a topic created, grown and deleted, again and again under one name."""

from random import Random
from typing import Final

from kvorum.metadata.topics_image import TopicImage
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.wire.messages.create_partitions import CreatePartitionsRequest
from kvorum.wire.messages.create_topics import CreateTopicsRequest
from kvorum.wire.messages.delete_topics import DeleteTopicsRequest
from kvorum.wire.primitives import Message

IS_DELETED_BY_NAME: Final = 0.3
_TIMEOUT_MS: Final = 1_000


class TopicOperator:
    """Asks the controller, one request after the other; the metadata says what has happened."""

    def __init__(self, around: BrokerSurroundings, name: str, random: Random) -> None:
        self._around = around
        self._name = name
        self._random = random
        self._is_asking = False

    @property
    def topic(self) -> TopicImage | None:
        """The topic of the name that the quorum has committed; None without one."""
        return self._around.committed_image.topics.by_name(self._name)

    def create(self, partitions: int) -> None:
        """Have the topic created with so many partitions."""
        settings = self._around.settings
        configs = [
            CreateTopicsRequest.CreatableTopicConfig(name, value)
            for name, value in settings.topic_configs(self._name).items()
        ]
        topic = CreateTopicsRequest.CreatableTopic(
            self._name,
            num_partitions=partitions,
            replication_factor=settings.replicas,
            configs=configs,
        )
        self._ask(CreateTopicsRequest([topic], _TIMEOUT_MS))

    def grow(self, partitions: int) -> None:
        """Have the topic grow to so many partitions."""
        topic = CreatePartitionsRequest.CreatePartitionsTopic(self._name, partitions, None)
        self._ask(CreatePartitionsRequest([topic], timeout_ms=_TIMEOUT_MS))

    def delete(self, image: TopicImage) -> None:
        """Have the topic deleted, by its name or its id."""
        is_by_name = self._random.random() < IS_DELETED_BY_NAME
        topic = (
            DeleteTopicsRequest.DeleteTopicState(self._name)
            if is_by_name
            else DeleteTopicsRequest.DeleteTopicState(None, image.id)
        )
        self._ask(DeleteTopicsRequest([topic], timeout_ms=_TIMEOUT_MS))

    def _ask(self, request: Message) -> None:
        """Ask the controller, unless an earlier request waits for its answer."""
        if self._is_asking:
            return
        self._is_asking = True
        self._around.ask_leader(request, self._on_answer)

    def _on_answer(self, _: Message | None) -> None:
        """Let the metadata say what has happened: an answer may be lost."""
        self._is_asking = False
