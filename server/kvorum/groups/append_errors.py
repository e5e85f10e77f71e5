"""The codes that clients of groups understand in TxnOffsetCommit and OffsetFetch."""

from kvorum.coordinator.append_errors import append_error_to_response_error
from kvorum.wire.error_codes import ErrorCode


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
