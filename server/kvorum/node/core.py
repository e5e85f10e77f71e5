"""What both roles of a node share: its directories, sockets, log and metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from kvorum.metadata.cluster_image import Endpoint
from kvorum.metadata.features import VersionRange, supported_features
from kvorum.node.config import NodeConfig
from kvorum.node.directories import NodeDirectories
from kvorum.node.endpoints import Sockets
from kvorum.node.log_follower import LogFollower
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.outbound.controller_channel import ChannelSettings, ControllerChannel
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft import Clock, RaftNode
from kvorum.node.serving.connection import ConnectionRules
from kvorum.node.serving.connection_limits import ConnectionLimits
from kvorum.node.serving.dispatch import Dispatcher, Node
from kvorum.node.serving.listener import ListenerServer
from kvorum.storage.files import FileSystem


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCore:
    """The parts that exist before any role does."""

    config: NodeConfig
    directories: NodeDirectories
    files: FileSystem
    clock: Clock
    random: Random
    sockets: Sockets
    controller_endpoints: tuple[Endpoint, ...]
    loader: MetadataLoader
    follower: LogFollower
    raft: RaftNode
    outgoing: Outgoing
    limits: ConnectionLimits

    @property
    def supported_features(self) -> Mapping[str, VersionRange]:
        """What this node says it supports when it registers."""
        return supported_features(enable_unstable=self.config.enable_unstable_feature_versions)

    def channel(self, purpose: str, *, timeout_ms: int) -> ControllerChannel:
        """Return a new way to the active controller."""
        return ControllerChannel(
            ChannelSettings(self.config.node_id, purpose, timeout_ms),
            self.raft.leader_endpoint,
            clock=self.clock,
            outgoing=self.outgoing,
        )

    def server(self, listener: str, dispatcher: Dispatcher[Node]) -> ListenerServer:
        """Return the server of one listener, not started."""
        network = self.config.network
        rules = ConnectionRules(
            listener=listener,
            frame_bytes_max=network.request_bytes_max,
            answer=dispatcher.answer,
            limits=self.limits,
            clock=self.clock,
        )
        return ListenerServer(
            rules, idle_ms_max=network.connections_idle_ms_max, backlog=network.listen_backlog
        )
