"""The error code of a number that another node has sent."""

from kvorum.wire.error_codes import ErrorCode


def known_error_code(number: int) -> ErrorCode:
    """Return the error code of a number; UNKNOWN_SERVER_ERROR for one of a newer release."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
