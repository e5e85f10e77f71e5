"""What an operator's own rules look like: policies that topics and configurations must pass.

``create.topic.policy.class.name`` and ``alter.config.policy.class.name`` name a class, as
``package.module.Class`` or ``package.module:Class``, that the active controller asks before it
decides (KIP-108, KIP-133). It is made without arguments when the node starts; `configure`, where
the class has one, is given the texts of the properties file, and `close` is called at the end.

    class NamesHaveAnOwner:
        def validate(self, request: CreateTopicRequest) -> None:
            if "." not in request.topic:
                raise PolicyViolationError("a topic is named owner.purpose")

A policy is called while the controller decides, one call at a time, and everything waits for it:
it must not block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


class PolicyViolationError(Exception):
    """Raise this to refuse: the client is answered POLICY_VIOLATION (44) and given the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicRequest:
    """A topic that somebody wants.

    `replicas_assignments` are the replicas of each partition where the client assigned them; then
    `num_partitions` and `replication_factor` are None. Otherwise these are numbers, with the
    controller's defaults filled in, and there are no assignments. `configs` are the values the
    client gave.
    """

    topic: str
    configs: Mapping[str, str]
    num_partitions: int | None = None
    replication_factor: int | None = None
    replicas_assignments: Mapping[int, Sequence[int]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigRequest:
    """Values that somebody wants to change, of one resource.

    `resource_type` is Kafka's number: 2 for topics, 4 for brokers, 16 for client metrics, 32 for
    groups. `configs` holds what the client changes explicitly and nothing else; None removes a
    value.
    """

    resource_type: int
    resource_name: str
    configs: Mapping[str, str | None]


class CreateTopicPolicy(Protocol):
    """Decides which topics may be created."""

    def validate(self, request: CreateTopicRequest, /) -> None:
        """Raise `PolicyViolationError` to refuse the topic."""


class AlterConfigPolicy(Protocol):
    """Decides which configurations may be changed, also those a new topic comes with."""

    def validate(self, request: AlterConfigRequest, /) -> None:
        """Raise `PolicyViolationError` to refuse the change."""


@runtime_checkable
class Configurable(Protocol):
    """A policy that wants to see the node's configuration."""

    def configure(self, configs: Mapping[str, str], /) -> None:
        """Take the texts of the properties file; an exception stops the node's start."""


@runtime_checkable
class Closeable(Protocol):
    """A policy that has something to give back at the end."""

    def close(self) -> None:
        """Give it back; an exception is logged and nothing more."""
