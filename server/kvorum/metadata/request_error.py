"""The one operating error of whoever answers requests: one, or a part of one, is refused."""

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
        """Return the refusal that spells out the code's own message."""
        return cls(code, code.default_message)

    @property
    def message_or_default(self) -> str | None:
        """The message, or the code's own where there is none."""
        return self.code.default_message if self.message is None else self.message
