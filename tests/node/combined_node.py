"""A combined node in this process, for tests that need one node and no cluster around it."""

from __future__ import annotations

from pathlib import Path

from kvorum.node.embedded.node import ClusterSize, EmbeddedNode, places_of, prepare_nodes
from kvorum.storage.files import FileSystem


def prepare_node(
    folder: Path, *, broker_port: int | None = None, files: FileSystem | None = None
) -> EmbeddedNode:
    """Return the only node of the cluster in `folder`; see `prepare_nodes`."""
    (place,) = places_of(folder, ClusterSize(controllers=1, brokers=1))
    return prepare_nodes(folder, [place], broker_port=broker_port, files=files)[place.node_id]
