"""The topics of a commit of offsets: what is refused at once, what the coordinator has to see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message


class _Indexed(Protocol):
    partition_index: int


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

    `has_ids` says whether the request names topics by their ids.
    """

    def __init__(
        self, request: IncomingRequest[Message], topics: TopicsImage, *, has_ids: bool
    ) -> None:
        self.accepted: list[AcceptedTopic[Partition]] = []
        self._answered: dict[str | bytes, AnsweredTopic] = {}
        self._access = request.access
        self._topics = topics
        self._has_ids = has_ids

    @property
    def is_refused(self) -> bool:
        """Whether anything has been refused."""
        return bool(self._answered)

    @property
    def answered(self) -> list[AnsweredTopic]:
        """The refusals, then the coordinator's answers, by topic."""
        return list(self._answered.values())

    def sort_out(self, name: str, topic_id: bytes, partitions: list[Partition]) -> None:
        """Look at one topic of the request."""
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
            self.answer(name, topic_id if image is None else image.id, refused)
        if image is not None and known:
            self.accepted.append(AcceptedTopic(name, image.id, known))

    def answer(self, name: str, topic_id: bytes, partitions: Iterable[tuple[int, int]]) -> None:
        """Add the answers of a topic's partitions to those that it has."""
        key = topic_id if self._has_ids else name
        topic = self._answered.setdefault(key, AnsweredTopic(name, topic_id, []))
        topic.partitions.extend(partitions)


def _has_partition(image: TopicImage | None, index: int) -> bool:
    return image is not None and image.partitions.get(index) is not None
