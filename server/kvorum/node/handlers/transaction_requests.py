"""The code that the handlers of transactions share."""

from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.api import RequestError
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message


def require_on_transactional_id(
    request: IncomingRequest[Message], operation: AclOperation, transactional_id: str
) -> None:
    """Raise RequestError TRANSACTIONAL_ID_AUTHORIZATION_FAILED unless `operation` is allowed."""
    kind = AclResourceType.TRANSACTIONAL_ID
    if not request.access.allows(operation, kind, transactional_id):
        raise RequestError.with_default_message(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def fenced_code(code: ErrorCode, *, is_known: bool) -> ErrorCode:
    """Return the code for a fenced producer that its version of the API knows; else `code`."""
    if code is ErrorCode.PRODUCER_FENCED and not is_known:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
