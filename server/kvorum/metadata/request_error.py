"""The error that refuses a request, or a part of one, and the refusal of a whole request.

A refusal takes the request, the error and the version of the request, and returns the response
that Kafka's `AbstractRequest.getErrorResponse` makes. Where the form has a place for the error of
the whole, one of the functions below makes the refusal; other APIs have their own, which gives the
error to every part.

It is the only way to refuse: for a missing permission, an error of the handler, a defect, and
NOT_CONTROLLER. A connection is closed only where Kafka closes it: after bytes that are not a
request, and after a version that is not served.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, TypeVar

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message


class RequestError(Exception):
    """A refusal with Kafka's error code and, where Kafka sends one, its message.

    `message` is None where Kafka answers with the bare code.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.default_message)
        self.code = code
        self.message = message

    @classmethod
    def with_default_message(cls, code: ErrorCode) -> RequestError:
        """Return the refusal with the default message of `code`."""
        return cls(code, code.default_message)

    @property
    def message_or_default(self) -> str | None:
        """The message, or the default message of the code without one."""
        return self.code.default_message if self.message is None else self.message


def invalid_request(message: str) -> RequestError:
    """Return the refusal INVALID_REQUEST with a message."""
    return RequestError(ErrorCode.INVALID_REQUEST, message)


class _WithCode(Protocol):
    """A response with an error code for the whole."""

    error_code: int


class _WithMessage(Protocol):
    """A response with an error code and a text for the whole."""

    error_code: int
    error_message: str | None


Coded = TypeVar("Coded", bound=_WithCode)
Explained = TypeVar("Explained", bound=_WithMessage)
Refused = TypeVar("Refused")
Refuse: TypeAlias = Callable[[Message, RequestError, int], Refused]
"""Returns the response that refuses a request, in a version."""


def refused_by_code(make: Callable[[], Coded]) -> Refuse[Coded]:
    """Return a refusal that sets the error code of a response which is empty otherwise."""

    def refuse(_: Message, error: RequestError, _version: int) -> Coded:
        response = make()
        response.error_code = error.code
        return response

    return refuse


def refused_by_message(make: Callable[[], Explained]) -> Refuse[Explained]:
    """Return a refusal with the code and the error's own text."""
    return _explaining(make, lambda error: error.message)


def refused_by_default_message(make: Callable[[], Explained]) -> Refuse[Explained]:
    """Return a refusal with the code and the text that Kafka gives to the code by default."""
    return _explaining(make, lambda error: error.code.default_message)


def refused_by_message_or_default(make: Callable[[], Explained]) -> Refuse[Explained]:
    """Return a refusal with the code and the error's own text, or without one the code's."""
    return _explaining(make, lambda error: error.message_or_default)


def _explaining(
    make: Callable[[], Explained], text: Callable[[RequestError], str | None]
) -> Refuse[Explained]:
    def refuse(_: Message, error: RequestError, _version: int) -> Explained:
        response = make()
        response.error_code = error.code
        response.error_message = text(error)
        return response

    return refuse
