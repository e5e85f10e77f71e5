"""The errors that members get when a record of their group could not be appended."""

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


def append_error_to_transactional_error(error: ErrorCode) -> ErrorCode:
    """Return the code for TxnOffsetCommit, for an error of the log or of the verification.

    Older clients do not repeat a request upon NETWORK_EXCEPTION, which is that of a coordinator of
    transactions that did not answer.
    """
    if error is ErrorCode.NETWORK_EXCEPTION:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return append_error_to_response_error(error)


def append_error_to_fetch_error(error: ErrorCode) -> ErrorCode:
    """Return the code for OffsetFetch, whose older clients do not repeat a request upon others."""
    answered = append_error_to_response_error(error)
    is_other = answered is ErrorCode.COORDINATOR_NOT_AVAILABLE and answered is not error
    return ErrorCode.NOT_COORDINATOR if is_other else answered
