"""Answers that say that a node failed over a request, rather than refused it."""

from collections.abc import Iterator

from tests.interop.differential.comparing import is_array, is_object
from tests.interop.differential.sides import NO_ANSWER

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.json_form import Json


def error_codes(value: Json) -> Iterator[Json]:
    """Yield every error code within an answer."""
    if is_object(value):
        for name, inner in value.items():
            if name == "errorCode":
                yield inner
            yield from error_codes(inner)
    elif is_array(value):
        for inner in value:
            yield from error_codes(inner)


def is_failure(value: Json) -> bool:
    """Tell whether a node failed over a request, rather than to refuse it."""
    return bool(value == NO_ANSWER) or ErrorCode.UNKNOWN_SERVER_ERROR in error_codes(value)


def is_met_otherwise(found: Json, expected: Json) -> bool:
    """Tell whether our answer to a request differs from the real one in a way that counts.

    Where the real node fails, ours may answer better, or fail in the same words.
    """
    return bool(found != expected) and (not is_failure(expected) or is_failure(found))
