"""The errors of the persister, as the clients of a share partition see them."""

from typing import Final

from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode

COORDINATOR_ERRORS: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
FENCED_ERRORS: Final = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH})
KEPT_ERRORS: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
HIDDEN_ERRORS: Final = frozenset(
    {ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_VERSION}
)
"""Errors between brokers, which are nothing that a client could act on."""


def persister_error(error_code: int, error_message: str | None) -> RequestError | None:
    """Return the refusal for an error code of the persister; None for none."""
    if error_code == ErrorCode.NONE:
        return None
    if error_code in COORDINATOR_ERRORS:
        return RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error_message)
    if error_code in FENCED_ERRORS:
        return RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error_message)
    if error_code in KEPT_ERRORS:
        return RequestError(ErrorCode(error_code), error_message)
    if error_code in HIDDEN_ERRORS:
        return RequestError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "Unable to complete operation due to server error."
        )
    return RequestError(ErrorCode.UNKNOWN_SERVER_ERROR, error_message)
