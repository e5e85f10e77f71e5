"""The settings of a node's replica of the metadata log, from the node's configuration."""

from __future__ import annotations

from collections.abc import Iterable

from kvorum.metadata.cluster_image import Endpoint
from kvorum.node.config import NodeConfig
from kvorum.node.directories import NodeDirectories
from kvorum.node.raft import RaftSettings
from kvorum.raft import Destination
from kvorum.raft import Endpoint as RaftEndpoint
from kvorum.raft.config import RaftConfig
from kvorum.storage.log.log_config import LogConfig


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
        raft=RaftConfig(
            election_timeout_ms=quorum.election_timeout_ms,
            election_backoff_ms_max=quorum.election_backoff_ms_max,
            fetch_timeout_ms=quorum.fetch_timeout_ms,
            request_timeout_ms=quorum.request_timeout_ms,
            retry_backoff_ms=quorum.retry_backoff_ms,
            auto_join=quorum.auto_join,
            fetch_bytes_max=quorum.fetch_bytes_max,
            fetch_snapshot_bytes_max=quorum.fetch_snapshot_bytes_max,
        ),
        log=LogConfig(
            segment_bytes=config.metadata_log.segment_bytes_max,
            segment_ms=config.metadata_log.segment_ms_max,
            retention_bytes=config.metadata_log.retention_bytes,
            retention_ms=config.metadata_log.retention_ms,
            delete_delay_ms=config.metadata_log.delete_delay_ms,
        ),
    )
