"""The code that the handlers of groups share."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol, TypeVar, TypeVarTuple, Unpack

from kvorum.groups.request_context import RequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError
from kvorum.metadata.features import GROUP_VERSION_FEATURE
from kvorum.metadata.standard_authorizer import Access, host_text
from kvorum.node.coroutines import Promise
from kvorum.node.runtime import Runtime
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message

_HAS_HIDDEN_TOPICS: Final = (
    "The group has described topic(s) that the client is not authorized to describe."
)


class _Described(Protocol):
    """A group in the response to a request that describes groups."""

    error_code: int
    group_id: str
    authorized_operations: int


Described = TypeVar("Described", bound=_Described)
Response = TypeVar("Response")
Arguments = TypeVarTuple("Arguments")


async def asked(
    runtime: Runtime,
    method: Callable[[Unpack[Arguments], Callable[[Response | RequestError], None]], None],
    *arguments: *Arguments,
) -> Response:
    """Return what a method of the group coordinator calls back with; raises a RequestError."""
    promise: Promise[Response] = Promise(runtime)
    method(*arguments, promise.settle)
    return await promise.result()


def context_of(request: IncomingRequest[Message]) -> RequestContext:
    """Return what a shard has to know of the request's client."""
    access = request.access
    return RequestContext(
        version=request.version,
        client_id=request.header.client_id or "",
        client_host=f"/{host_text(request.client_host)}",
        describable_topics=lambda names: access.allowed_topics(
            AclOperation.DESCRIBE, names, logs_denied=False
        ),
    )


def require_on_group(
    request: IncomingRequest[Message], operation: AclOperation, group_id: str
) -> None:
    """Raise RequestError GROUP_AUTHORIZATION_FAILED unless `operation` is allowed."""
    if not request.access.allows_on_group(operation, group_id):
        raise RequestError.with_default_message(ErrorCode.GROUP_AUTHORIZATION_FAILED)


def demand_consumer_protocol(broker: BrokerServices) -> None:
    """Raise RequestError UNSUPPORTED_VERSION unless cluster and broker have KIP-848's groups."""
    image = broker.loader.published
    settings = broker.config.groups.coordinator
    is_finalized = image.features.level(GROUP_VERSION_FEATURE) > 0
    if not (is_finalized and settings.consumer.is_enabled):
        raise RequestError(ErrorCode.UNSUPPORTED_VERSION)


def describe_each(
    request: IncomingRequest[Message],
    group_ids: Sequence[str],
    *,
    describe: Callable[[str], Described],
    refuse: Callable[[str, ErrorCode], Described],
    with_operations: bool,
) -> list[Described]:
    """Describe each group; those that the client may not know of come first, as in Kafka."""
    access = request.access
    allowed = {
        group_id: access.allows_on_group(AclOperation.DESCRIBE, group_id) for group_id in group_ids
    }
    groups = [
        refuse(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        for group_id in group_ids
        if not allowed[group_id]
    ]
    for group_id in group_ids:
        if not allowed[group_id]:
            continue
        group = describe(group_id)
        if with_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = access.operations_on_group(group_id)
        groups.append(group)
    return groups


def without_hidden_topics(
    groups: Sequence[Described],
    access: Access,
    *,
    topics_of: Callable[[Described], Iterable[str]],
    refuse: Callable[[str, ErrorCode, str], Described],
) -> list[Described]:
    """Replace groups whose members have topics that the client may not describe."""
    names = sorted({name for group in groups for name in topics_of(group)})
    allowed = access.allowed_topics(AclOperation.DESCRIBE, names)
    return [
        group
        if allowed.issuperset(topics_of(group))
        else refuse(group.group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, _HAS_HIDDEN_TOPICS)
        for group in groups
    ]
