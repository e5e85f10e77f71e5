"""The interface of an operator's policies for topics and configurations (KIP-108, KIP-133).

``create.topic.policy.class.name`` and ``alter.config.policy.class.name`` name a class, as
``package.module.Class`` or ``package.module:Class``, which the active controller calls before it
decides. The node makes an object of it without arguments when it starts. If the class has
`configure`, that is called with the texts of the properties file; `close` is called at the end.

    class NamesHaveAnOwner:
        def validate(self, request: CreateTopicRequest) -> None:
            if "." not in request.topic:
                raise PolicyViolationError("a topic is named owner.purpose")

The controller waits for each call of a policy, one at a time: a policy must not block.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode

_log = logging.getLogger(__name__)


class PolicyViolationError(Exception):
    """The refusal of a policy: the client gets POLICY_VIOLATION (44) and the exception's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicRequest:
    """A request for a new topic.

    `replicas_assignments` are the replicas of each partition if the client assigned them; then
    `num_partitions` and `replication_factor` are None. Otherwise these are numbers, with the
    controller's defaults filled in, and there are no assignments. `configs` are the values that
    the client gave.
    """

    topic: str
    configs: Mapping[str, str]
    num_partitions: int | None = None
    replication_factor: int | None = None
    replicas_assignments: Mapping[int, Sequence[int]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigRequest:
    """A request for a change of one resource's configuration.

    `resource_type` is Kafka's number: 2 for topics, 4 for brokers, 16 for client metrics, 32 for
    groups. `configs` holds what the client changes explicitly and nothing else; None removes a
    value.
    """

    resource_type: int
    resource_name: str
    configs: Mapping[str, str | None]


class CreateTopicPolicy(Protocol):
    """A policy that decides which topics may be created."""

    def validate(self, request: CreateTopicRequest, /) -> None:
        """Raise `PolicyViolationError` to refuse the topic."""


class AlterConfigPolicy(Protocol):
    """A policy that decides which configurations may be set, also those of a new topic."""

    def validate(self, request: AlterConfigRequest, /) -> None:
        """Raise `PolicyViolationError` to refuse the change."""


@runtime_checkable
class Configurable(Protocol):
    """A policy that reads the node's configuration."""

    def configure(self, configs: Mapping[str, str], /) -> None:
        """Take the texts of the properties file; an exception stops the node's start."""


@runtime_checkable
class Closeable(Protocol):
    """A policy that releases resources at the end."""

    def close(self) -> None:
        """Release the resources; an exception is only logged."""


def ask_policy(validate: Callable[[], None]) -> None:
    """Call a policy; raise `RequestError` with Kafka's error where the policy raises.

    A violation is answered with its own text. A policy may also refuse with any error of the
    protocol. Any other exception is a defect of the policy, whose text the client does not get.
    """
    try:
        validate()
    except PolicyViolationError as violation:
        message = str(violation) if violation.args else None
        raise RequestError(ErrorCode.POLICY_VIOLATION, message) from violation
    except RequestError:
        raise
    except Exception:  # noqa: BLE001 - the code is the operator's
        _log.exception("A policy failed, and what it was asked about is refused")
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR) from None
