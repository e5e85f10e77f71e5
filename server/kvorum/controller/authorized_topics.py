"""Which topics of a request its client may create, extend or delete.

What is refused is taken out before the request is handled, and told in the response. Names that a
client may not describe look the same whether there is such a topic or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

from kvorum.controller.narrowing import Narrowed
from kvorum.metadata.access import Access
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsResponseCreatePartitionsTopicResult,
)
from kvorum.wire.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsResponseCreatableTopicResult,
)
from kvorum.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
    DeleteTopicsResponse,
    DeleteTopicsResponseDeletableTopicResult,
)
from kvorum.wire.uuid_text import ZERO_UUID

Asked = TypeVar("Asked", str, bytes)
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NOT_TOLD = -1


def narrow_create_topics(
    _: MetadataImage, request: CreateTopicsRequest, access: Access
) -> Narrowed[CreateTopicsRequest, CreateTopicsResponse]:
    """CREATE on the cluster or the topic; without DESCRIBE_CONFIGS nothing is told of it."""
    counts = Counter(topic.name for topic in request.topics)
    asked = [n for n, count in counts.items() if count == 1 and n != CLUSTER_METADATA_TOPIC]
    creatable = frozenset(asked)
    if not access.allows_on_cluster(AclOperation.CREATE):
        creatable = access.allowed_topics(AclOperation.CREATE, asked)
    describable = access.allowed_topics(AclOperation.DESCRIBE_CONFIGS, asked)
    refused = [name for name in asked if name not in creatable]

    def complete(response: CreateTopicsResponse) -> None:
        for result in response.topics:
            if result.error_code == ErrorCode.NONE and result.name not in describable:
                result.topic_config_error_code = REFUSED
                result.num_partitions = NOT_TOLD
                result.replication_factor = NOT_TOLD
                result.configs = []
        response.topics.extend(
            CreateTopicsResponseCreatableTopicResult(
                name=name, error_code=REFUSED, error_message="Authorization failed."
            )
            for name in refused
        )

    left = CreateTopicsRequest(
        topics=[topic for topic in request.topics if topic.name not in refused],
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    return Narrowed(left, complete)


def narrow_create_partitions(
    _: MetadataImage, request: CreatePartitionsRequest, access: Access
) -> Narrowed[CreatePartitionsRequest, CreatePartitionsResponse]:
    """ALTER on the topic."""
    counts = Counter(topic.name for topic in request.topics)
    once = [name for name, count in counts.items() if count == 1]
    allowed = access.allowed_topics(AclOperation.ALTER, once)
    refused = [name for name in once if name not in allowed]

    def complete(response: CreatePartitionsResponse) -> None:
        # Between the names that came twice, which were refused first, and all others.
        place = len(counts) - len(once)
        response.results[place:place] = [
            CreatePartitionsResponseCreatePartitionsTopicResult(
                name=name, error_code=REFUSED, error_message=None
            )
            for name in refused
        ]

    left = CreatePartitionsRequest(
        topics=[topic for topic in request.topics if topic.name not in refused],
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    return Narrowed(left, complete)


def narrow_delete_topics(
    image: MetadataImage, request: DeleteTopicsRequest, access: Access
) -> Narrowed[DeleteTopicsRequest, DeleteTopicsResponse]:
    """DELETE on the cluster or the topic; DESCRIBE on it, to be told that there is one."""
    if access.allows_on_cluster(AclOperation.DELETE):
        return Narrowed(request, _nothing)
    refused_names = _refused_names(image, request, access)
    refused_ids = _refused_ids(image, request, access)

    def is_left(topic: DeleteTopicsRequestDeleteTopicState) -> bool:
        if topic.name is None:
            return topic.topic_id not in refused_ids
        return topic.topic_id != ZERO_UUID or topic.name not in refused_names

    def complete(response: DeleteTopicsResponse) -> None:
        response.responses.extend(_refusal(name, ZERO_UUID) for name in refused_names)
        response.responses.extend(_refusal(name, key) for key, name in refused_ids.items())

    left = DeleteTopicsRequest(
        topics=[topic for topic in request.topics if is_left(topic)],
        topic_names=[name for name in request.topic_names if name not in refused_names],
        timeout_ms=request.timeout_ms,
    )
    return Narrowed(left, complete)


def _refused_names(
    image: MetadataImage, request: DeleteTopicsRequest, access: Access
) -> frozenset[str]:
    """Return the names to refuse: also those of no topic, where that is not to be told."""
    names = [*request.topic_names]
    names += [t.name for t in request.topics if t.name is not None and t.topic_id == ZERO_UUID]
    return frozenset(
        name
        for name in _only_once(names)
        if not access.allows_on_topic(AclOperation.DESCRIBE, name)
        or (name in image.topics.ids and not access.allows_on_topic(AclOperation.DELETE, name))
    )


def _refused_ids(
    image: MetadataImage, request: DeleteTopicsRequest, access: Access
) -> dict[bytes, str | None]:
    """Return the ids of topics to refuse, with the name where the client may know it."""
    refused: dict[bytes, str | None] = {}
    ids = [t.topic_id for t in request.topics if t.name is None and t.topic_id != ZERO_UUID]
    for topic_id in _only_once(ids):
        topic = image.topics.by_id.get(topic_id)
        if topic is not None and not access.allows_on_topic(AclOperation.DELETE, topic.name):
            may_know = access.allows_on_topic(AclOperation.DESCRIBE, topic.name)
            refused[topic_id] = topic.name if may_know else None
    return refused


def _only_once(asked: Iterable[Asked]) -> list[Asked]:
    return [each for each, count in Counter(asked).items() if count == 1]


def _refusal(name: str | None, topic_id: bytes) -> DeleteTopicsResponseDeletableTopicResult:
    return DeleteTopicsResponseDeletableTopicResult(
        name=name,
        topic_id=topic_id,
        error_code=REFUSED,
        error_message=REFUSED.default_message,
    )


def _nothing(_: DeleteTopicsResponse) -> None:
    """Add nothing."""
