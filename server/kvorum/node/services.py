"""What the handlers of each listener work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from kvorum.node.broker.topic_creator import TopicCreator
from kvorum.node.config import NodeConfig
from kvorum.node.controller.shell import ControllerShell
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.outbound.forwarding import Forwarder
from kvorum.node.raft import Clock, RaftNode

if TYPE_CHECKING:
    from kvorum.node.serving.dispatch import Dispatcher

VersionRanges = Mapping[int, tuple[int, int]]
"""The lowest and highest version by API key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerServices:
    """The broker's side of a node; `served` is what its listeners offer at this moment."""

    config: NodeConfig
    cluster_id: str
    raft: RaftNode
    loader: MetadataLoader
    forwarder: Forwarder
    topic_creator: TopicCreator
    clock: Clock
    random: Random
    served: Callable[[], VersionRanges]


@dataclass(slots=True, kw_only=True)
class ControllerServices:
    """The controller's side of a node; `dispatcher` reads what comes in an Envelope."""

    config: NodeConfig
    cluster_id: str
    raft: RaftNode
    loader: MetadataLoader
    shell: ControllerShell
    served: VersionRanges
    dispatcher: Dispatcher[ControllerServices] | None = field(default=None, repr=False)
