"""The code that the handlers of groups share."""

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple, Unpack

from kvorum.groups.request_context import RequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError
from kvorum.metadata.standard_authorizer import host_text
from kvorum.node.coroutines import Promise
from kvorum.node.runtime import Runtime
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message

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
    client_id = request.header.client_id or ""
    return RequestContext(request.version, client_id, f"/{host_text(request.client_host)}")


def require_on_group(
    request: IncomingRequest[Message], operation: AclOperation, group_id: str
) -> None:
    """Raise RequestError GROUP_AUTHORIZATION_FAILED unless `operation` is allowed."""
    if not request.access.allows_on_group(operation, group_id):
        raise RequestError.with_default_message(ErrorCode.GROUP_AUTHORIZATION_FAILED)
