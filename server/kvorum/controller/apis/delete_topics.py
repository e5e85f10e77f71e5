"""DeleteTopics (20): deletes topics by name or id."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from kvorum.controller.api import (
    ControllerApi,
    ControllerResult,
    Filtered,
    MutationQuotaTerms,
    check_record_count,
    own_timeout_ms,
)
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError, invalid_request
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.standard_authorizer import Access
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kvorum.wire.messages.delete_topics import (
    DeleteTopicsResponseDeletableTopicResult as DeletableTopicResult,
)
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.uuid_text import ZERO_UUID

FIRST_VERSION_WITH_DISABLED_CODE: Final = 3
Asked = TypeVar("Asked", str, bytes)
NOT_AUTHORIZED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@dataclass(slots=True)
class _Wanted:
    """The topics that a request names, each once, and the results of refused duplicates."""

    names: list[str] = field(default_factory=list[str])
    ids: list[bytes] = field(default_factory=list[bytes])
    duplicate_ids: set[bytes] = field(default_factory=set[bytes])
    refused: list[DeletableTopicResult] = field(default_factory=list[DeletableTopicResult])


class _PermittedTopics(NamedTuple):
    """The names that the client may know of, and those whose topics it may delete."""

    describable: frozenset[str]
    deletable: frozenset[str]


def delete_topics(
    image: MetadataImage, request: DeleteTopicsRequest, context: ControllerRequestContext
) -> ControllerResult[DeleteTopicsResponse]:
    """Delete topics by name or id, each on its own; the order of the results is undefined."""
    _check_deletion_is_enabled(context)
    wanted = _sort_out(request)
    results = wanted.refused
    records: list[RecordAndVersion] = []
    for topic_id, name in _find(image, wanted, results).items():
        try:
            context.record_mutations(len(image.topics.by_id[topic_id].partitions))
        except RequestError as error:
            results.append(_result(name, topic_id, error.code, error.message))
            continue
        records.append((RemoveTopicRecord(topic_id=topic_id), 0))
        results.append(_result(name, topic_id, ErrorCode.NONE, None))
    check_record_count(records)
    return ControllerResult(DeleteTopicsResponse(responses=results), tuple(records))


def _check_deletion_is_enabled(context: ControllerRequestContext) -> None:
    if context.settings.is_topic_deletion_enabled:
        return
    if context.api_version < FIRST_VERSION_WITH_DISABLED_CODE:
        raise invalid_request("This version does not support topic deletion.")
    raise RequestError(ErrorCode.TOPIC_DELETION_DISABLED)


def _sort_out(request: DeleteTopicsRequest) -> _Wanted:
    wanted = _Wanted()
    names = list(request.topic_names)
    ids: list[bytes] = []
    for topic in request.topics:
        has_id = topic.topic_id != ZERO_UUID
        if topic.name is None and has_id:
            ids.append(topic.topic_id)
        elif topic.name is not None and not has_id:
            names.append(topic.name)
        else:
            wanted.refused.append(_contradiction(topic))
    for name, count in Counter(names).items():
        if count == 1:
            wanted.names.append(name)
        else:
            wanted.refused.append(
                _result(name, ZERO_UUID, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            )
    for topic_id, count in Counter(ids).items():
        if count == 1:
            wanted.ids.append(topic_id)
        else:
            wanted.duplicate_ids.add(topic_id)
            wanted.refused.append(
                _result(None, topic_id, ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
            )
    return wanted


def _contradiction(topic: DeleteTopicsRequest.DeleteTopicState) -> DeletableTopicResult:
    message = (
        "Neither topic name nor id were specified."
        if topic.name is None
        else "You may not specify both topic name and topic id."
    )
    return _result(topic.name, topic.topic_id, ErrorCode.INVALID_REQUEST, message)


def _find(
    image: MetadataImage, wanted: _Wanted, results: list[DeletableTopicResult]
) -> dict[bytes, str]:
    """Return the topics to delete by id; unknown topics are added to `results`."""
    topics: dict[bytes, str] = {}
    for topic_id in wanted.ids:
        found = image.topics.by_id.get(topic_id)
        if found is None:
            results.append(_by_default(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID))
        else:
            topics[topic_id] = found.name
    for name in wanted.names:
        named_id = image.topics.ids.get(name)
        if named_id is None:
            results.append(_by_default(name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif named_id in topics or named_id in wanted.duplicate_ids:
            topics.pop(named_id, None)
            wanted.duplicate_ids.add(named_id)
            results.append(
                _result(
                    name,
                    named_id,
                    ErrorCode.INVALID_REQUEST,
                    "The provided topic name maps to an ID that was already supplied.",
                )
            )
        else:
            topics[named_id] = name
    return topics


def _by_default(name: str | None, topic_id: bytes, code: ErrorCode) -> DeletableTopicResult:
    return _result(name, topic_id, code, code.default_message)


def _result(
    name: str | None, topic_id: bytes, code: ErrorCode, message: str | None
) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=code, error_message=message
    )


def _filter(
    image: MetadataImage, request: DeleteTopicsRequest, access: Access
) -> Filtered[DeleteTopicsRequest, DeleteTopicsResponse]:
    """Demand DELETE on cluster or topic; without DESCRIBE, hide whether the topic exists."""
    if access.allows_on_cluster(AclOperation.DELETE, logs_denied=False):
        return Filtered(request, _nothing)
    permitted = _permitted(image, request, access)
    refused_names = _refused_names(image, request, permitted)
    refused_ids = _refused_ids(image, request, permitted)

    def is_left(topic: DeleteTopicsRequest.DeleteTopicState) -> bool:
        if topic.name is None:
            return topic.topic_id not in refused_ids
        return topic.topic_id != ZERO_UUID or topic.name not in refused_names

    def complete(response: DeleteTopicsResponse) -> None:
        refused: list[tuple[str | None, bytes]] = [(name, ZERO_UUID) for name in refused_names]
        refused += [(name, topic_id) for topic_id, name in refused_ids.items()]
        response.responses.extend(_by_default(*topic, NOT_AUTHORIZED) for topic in refused)

    left = DeleteTopicsRequest(
        topics=[topic for topic in request.topics if is_left(topic)],
        topic_names=[name for name in request.topic_names if name not in refused_names],
        timeout_ms=request.timeout_ms,
    )
    return Filtered(left, complete)


def _permitted(
    image: MetadataImage, request: DeleteTopicsRequest, access: Access
) -> _PermittedTopics:
    """Return what the client may do with the topics of a request."""
    by_id = (image.topics.by_id.get(topic_id) for topic_id in _ids(request))
    names_of_ids = (topic.name for topic in by_id if topic is not None)
    names = list(dict.fromkeys([*_names(request), *names_of_ids]))
    return _PermittedTopics(
        describable=access.allowed_topics(AclOperation.DESCRIBE, names),
        deletable=access.allowed_topics(AclOperation.DELETE, names),
    )


def _names(request: DeleteTopicsRequest) -> list[str]:
    """Return the names that a request has once."""
    names = [t.name for t in request.topics if t.name is not None and t.topic_id == ZERO_UUID]
    return _only_once([*request.topic_names, *names])


def _ids(request: DeleteTopicsRequest) -> list[bytes]:
    """Return the ids that a request has once."""
    return _only_once(
        topic.topic_id
        for topic in request.topics
        if topic.name is None and topic.topic_id != ZERO_UUID
    )


def _refused_names(
    image: MetadataImage, request: DeleteTopicsRequest, permitted: _PermittedTopics
) -> frozenset[str]:
    """Return the names to refuse, also unknown ones whose absence the client may not see."""
    return frozenset(
        name
        for name in _names(request)
        if name not in permitted.describable
        or (name in image.topics.ids and name not in permitted.deletable)
    )


def _refused_ids(
    image: MetadataImage, request: DeleteTopicsRequest, permitted: _PermittedTopics
) -> dict[bytes, str | None]:
    """Return the ids of topics to refuse, with the name if the client may see it."""
    refused: dict[bytes, str | None] = {}
    for topic_id in _ids(request):
        topic = image.topics.by_id.get(topic_id)
        if topic is not None and topic.name not in permitted.deletable:
            refused[topic_id] = topic.name if topic.name in permitted.describable else None
    return refused


def _only_once(asked: Iterable[Asked]) -> list[Asked]:
    return [each for each, count in Counter(asked).items() if count == 1]


def _nothing(_: DeleteTopicsResponse) -> None:
    """Add nothing."""


def _refuse(
    request: DeleteTopicsRequest, error: RequestError, _version: int
) -> DeleteTopicsResponse:
    named = [(topic.name, topic.topic_id) for topic in request.topics]
    named += [(name, ZERO_UUID) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[_result(name, topic_id, error.code, None) for name, topic_id in named]
    )


API: Final = ControllerApi(
    request=DeleteTopicsRequest,
    permission=PER_RESOURCE,
    decide=delete_topics,
    refuse=_refuse,
    filter_by_authorization=_filter,
    timeout_ms=own_timeout_ms,
    mutation_quota=MutationQuotaTerms(strict_since=5, response=DeleteTopicsResponse),
)
