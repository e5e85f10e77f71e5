"""The codes that clients of a coordinator understand (CoordinatorOperationExceptionHelper)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.wire.error_codes import ErrorCode

_ANSWERS: Final[Mapping[ErrorCode, ErrorCode]] = MappingProxyType(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
        ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
        ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


def append_error_to_response_error(error: ErrorCode) -> ErrorCode:
    """Return the code that a client understands for an error of the log."""
    return _ANSWERS.get(error, error)
