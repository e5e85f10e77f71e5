"""The node configuration behind ``info`` and ``format``."""

from __future__ import annotations

from kvorum.node.config import NodeConfig, load_properties


def load_configuration(path: str) -> NodeConfig:
    """Read the file; a node that only Kafka can run may be formatted and inspected as well."""
    return NodeConfig.from_properties(load_properties(path), must_be_servable=False)


def log_directories(config: NodeConfig) -> tuple[str, ...]:
    """Return every directory of the node as the file writes it, in order of name."""
    return tuple(sorted({*config.log_directories, config.metadata_log.directory}))
