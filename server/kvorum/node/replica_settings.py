"""The settings of a node's replica of the metadata log, from the node's configuration."""

from __future__ import annotations

from collections.abc import Iterable

from kvorum.metadata.cluster_image import Endpoint
from kvorum.node.config import NodeConfig
from kvorum.node.directories import NodeDirectories
from kvorum.node.raft import RaftSettings
from kvorum.raft import Destination, RaftConfig
from kvorum.raft import Endpoint as RaftEndpoint


def replica_settings(
    config: NodeConfig, directories: NodeDirectories, controllers: Iterable[Endpoint]
) -> RaftSettings:
    """Return the settings; `controllers` are the advertised controller listeners."""
    quorum = config.quorum
    return RaftSettings(
        node_id=config.node_id,
        cluster_id=directories.cluster_id,
        directory_id=directories.metadata_directory_id,
        directory=directories.partition_directory,
        can_vote=config.is_controller,
        controller_listener=config.listeners.controller_names[0].upper(),
        local_listeners=tuple(
            RaftEndpoint(endpoint.listener, endpoint.host, endpoint.port)
            for endpoint in controllers
        ),
        static_voters=tuple(
            Destination(voter.node_id, voter.host, voter.port) for voter in quorum.voters
        ),
        bootstrap_servers=quorum.bootstrap_servers,
        raft=config.read(RaftConfig),
        log=config.metadata_log.log,
    )
