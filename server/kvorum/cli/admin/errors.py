"""What can go wrong when a command asks a cluster.

::

    AdminError              one line for the user, and what caused it where that says more
    └── CallFailedError     a request was refused, or had no answer in time
"""

from __future__ import annotations

from dataclasses import dataclass

from kvorum.cli.admin.error_classes import ERRORS_PACKAGE, class_of, error_code, is_retriable

CONFIG_EXCEPTION = "org.apache.kafka.common.config.ConfigException"


class AdminError(Exception):
    """A command cannot be carried out; `cause` is a second line, or empty."""

    def __init__(self, text: str, *, cause: str = "") -> None:
        super().__init__(text)
        self.cause = cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a call failed, in Kafka's words; `name` is a class in its package of errors."""

    class_name: str
    text: str | None
    is_retriable: bool = False
    is_elsewhere: bool = False
    """Whether somebody else is the controller: who it is has to be found out again."""

    def __str__(self) -> str:
        return self.class_name if self.text is None else f"{self.class_name}: {self.text}"


class CallFailedError(AdminError):
    """One call failed."""

    def __init__(self, failure: Failure, *, cause: Failure | None = None) -> None:
        super().__init__(str(failure), cause="" if cause is None else str(cause))
        self.failure = failure


def refusal(number: int, message: str | None) -> CallFailedError:
    """Return what an answer's error code means; without a message it has Kafka's usual one."""
    code = error_code(number)
    text = code.default_message if message is None else message
    failure = Failure(class_name=class_of(code), text=text, is_retriable=is_retriable(code))
    return CallFailedError(failure)


def failed(name: str, text: str, *, can_be_retried: bool = False) -> CallFailedError:
    """Return a failure that no error code stands for."""
    class_name = f"{ERRORS_PACKAGE}.{name}"
    return CallFailedError(Failure(class_name=class_name, text=text, is_retriable=can_be_retried))


def not_created(problem: str) -> AdminError:
    """Return what Kafka's tools say when they cannot even begin."""
    cause = f"{CONFIG_EXCEPTION}: {problem}"
    return AdminError("Failed to create new KafkaAdminClient", cause=cause)
