"""Errors of commands that talk to a cluster.

::

    AdminError              one line for the user, and its cause where that adds something
    └── CallFailedError     a request was refused, or got no response in time
        └── NotSupportedByNodeError     a request that the node does not know was not sent
"""

from __future__ import annotations

from dataclasses import dataclass

from kvorum.cli.admin.error_classes import ERRORS_PACKAGE, class_of, error_code, is_retriable

CONFIG_EXCEPTION = "org.apache.kafka.common.config.ConfigException"


class AdminError(Exception):
    """A command that cannot be carried out; `cause` is a second line, or empty."""

    def __init__(self, text: str, *, cause: str = "") -> None:
        super().__init__(text)
        self.cause = cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The reason why a call failed: the exception class of Kafka's clients, and its message."""

    class_name: str
    text: str | None
    is_retriable: bool = False
    is_elsewhere: bool = False
    """Whether another node is the controller, so that it has to be looked up again."""

    def __str__(self) -> str:
        return self.class_name if self.text is None else f"{self.class_name}: {self.text}"


class CallFailedError(AdminError):
    """A call that failed."""

    def __init__(self, failure: Failure, *, cause: Failure | None = None) -> None:
        super().__init__(str(failure), cause="" if cause is None else str(cause))
        self.failure = failure


class NotSupportedByNodeError(CallFailedError):
    """A call that was not sent, because the node knows no version in which it can be written."""

    def __init__(self, text: str) -> None:
        super().__init__(
            Failure(class_name=f"{ERRORS_PACKAGE}.UnsupportedVersionException", text=text)
        )


def refusal(number: int, message: str | None) -> CallFailedError:
    """Return the error for a response's error code; without a message, with the default one."""
    code = error_code(number)
    text = code.default_message if message is None else message
    failure = Failure(class_name=class_of(code), text=text, is_retriable=is_retriable(code))
    return CallFailedError(failure)


def failed(name: str, text: str, *, can_be_retried: bool = False) -> CallFailedError:
    """Return the error for a failure that has no error code."""
    class_name = f"{ERRORS_PACKAGE}.{name}"
    return CallFailedError(Failure(class_name=class_name, text=text, is_retriable=can_be_retried))


def not_created(problem: str) -> AdminError:
    """Return the error of Kafka's tools for an admin client that cannot be created."""
    cause = f"{CONFIG_EXCEPTION}: {problem}"
    return AdminError("Failed to create new KafkaAdminClient", cause=cause)
