"""The code that CreateAcls and DeleteAcls share."""

from typing import Final

from kvorum.controller.api import Requester
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message

NO_AUTHORIZER: Final = RequestError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def admit_with_authorizer(_: Message, requester: Requester) -> None:
    """Raise `RequestError` if the cluster has no authorizer, as any controller does."""
    if not requester.access.is_restricted:
        raise NO_AUTHORIZER
