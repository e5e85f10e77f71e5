"""The topics of a commit of offsets: what is refused at once, what the coordinator has to see."""

from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message


class _Indexed(Protocol):
    @property
    def partition_index(self) -> int: ...


_Partition_co = TypeVar("_Partition_co", bound=_Indexed, covariant=True)


class _Topic(Protocol[_Partition_co]):
    @property
    def name(self) -> str: ...

    @property
    def topic_id(self) -> bytes: ...

    @property
    def partitions(self) -> Sequence[_Partition_co]: ...


class _Answer(_Indexed, Protocol):
    @property
    def error_code(self) -> int: ...


Partition = TypeVar("Partition", bound=_Indexed)


class AcceptedTopic(NamedTuple, Generic[Partition]):
    """Partitions that exist, of a topic that the client may read."""

    name: str
    topic_id: bytes
    partitions: list[Partition]


class AnsweredTopic(NamedTuple):
    """The answers of a topic's partitions: their indexes and codes."""

    name: str
    topic_id: bytes
    partitions: list[tuple[int, int]]


class CommittedTopics(Generic[Partition]):
    """Sorts the topics of an OffsetCommit or a TxnOffsetCommit, and merges the answers.

    `asked` are the request's, and `has_ids` says whether it names them by their ids.
    """

    def __init__(
        self,
        request: IncomingRequest[Message],
        asked: Iterable[_Topic[Partition]],
        topics: TopicsImage,
        *,
        has_ids: bool,
    ) -> None:
        self.accepted: list[AcceptedTopic[Partition]] = []
        self._answered: dict[str | bytes, AnsweredTopic] = {}
        self._access = request.access
        self._topics = topics
        self._has_ids = has_ids
        for topic in asked:
            self._sort_out(topic.name, topic.topic_id, topic.partitions)

    @property
    def is_refused(self) -> bool:
        """Whether anything has been refused."""
        return bool(self._answered)

    @property
    def answered(self) -> list[AnsweredTopic]:
        """The refusals, by topic."""
        return list(self._answered.values())

    def _sort_out(self, name: str, topic_id: bytes, partitions: Sequence[Partition]) -> None:
        image = self._topics.by_id.get(topic_id) if self._has_ids else self._topics.by_name(name)
        if self._has_ids:
            name = "" if image is None else image.name
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._has_ids and image is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif not self._access.allows_on_topic(AclOperation.READ, name):
            code, image = ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
        known = [one for one in partitions if _has_partition(image, one.partition_index)]
        if image is None or len(known) < len(partitions):
            indexes = (one.partition_index for one in partitions)
            refused = [(index, code) for index in indexes if not _has_partition(image, index)]
            self._answer(name, topic_id if image is None else image.id, refused)
        if image is not None and known:
            self.accepted.append(AcceptedTopic(name, image.id, known))

    def merge(self, topics: Iterable[_Topic[_Answer]]) -> list[AnsweredTopic]:
        """Return the refusals with the coordinator's answers after them, by topic."""
        for topic in topics:
            codes = ((one.partition_index, one.error_code) for one in topic.partitions)
            self._answer(topic.name, topic.topic_id, codes)
        return self.answered

    def _answer(self, name: str, topic_id: bytes, partitions: Iterable[tuple[int, int]]) -> None:
        """Add the answers of a topic's partitions to those that it has."""
        key = topic_id if self._has_ids else name
        topic = self._answered.setdefault(key, AnsweredTopic(name, topic_id, []))
        topic.partitions.extend(partitions)


def refused_topics(topics: Iterable[_Topic[_Indexed]], code: int) -> Iterable[AnsweredTopic]:
    """Yield every topic with the refusal of all its partitions."""
    for topic in topics:
        codes = [(one.partition_index, code) for one in topic.partitions]
        yield AnsweredTopic(topic.name, topic.topic_id, codes)


def _has_partition(image: TopicImage | None, index: int) -> bool:
    return image is not None and image.partitions.get(index) is not None
