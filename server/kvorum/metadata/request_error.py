"""The error that refuses a request, or a part of one, with Kafka's error code."""

from __future__ import annotations

from kvorum.wire.error_codes import ErrorCode


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
