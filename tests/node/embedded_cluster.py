"""Embedded nodes: how one is prepared, and what tests ask of a cluster of them."""

from pathlib import Path
from typing import Final

from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, produce
from tests.support.replicated_topics import address_of, state_of
from tests.support.waiting import wait_for

from kvorum.metadata.configs_image import ResourceType
from kvorum.node.embedded.node import ClusterSize, EmbeddedNode, places_of, prepare_nodes
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.files import FileSystem
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse


def leader(cluster: Cluster, topic: str) -> RawClient:
    return RawClient(address_of(cluster, state_of(cluster, topic).leader))


def append(cluster: Cluster, topic: str, value: bytes) -> int:
    """Write a record with acks=all, again and again until the leader takes it."""

    def write() -> int | None:
        try:
            with leader(cluster, topic) as client:
                answer = produce(client, topic, batch(value))
        except (OSError, AssertionError, KeyError):
            return None
        return answer.base_offset if answer.error_code == ErrorCode.NONE else None

    return wait_for(write, f"{value!r} is written", otherwise=lambda: state_of(cluster, topic))


def brokers(cluster: Cluster) -> list[tuple[int, str]]:
    """Return id and address of each broker, in the order of the bootstrap servers."""
    addresses = cluster.bootstrap_servers.split(",")
    with RawClient(addresses[0]) as client:

        def ids() -> dict[str, int] | None:
            known = client.ask(MetadataRequest(topics=[]), MetadataResponse, 9).brokers
            found = {f"{one.host}:{one.port}": one.node_id for one in known}
            return found if found.keys() == set(addresses) else None

        found = wait_for(ids, "the broker knows all brokers")
    return [(found[address], address) for address in addresses]


def set_config(cluster: Cluster, kind: ResourceType, name: str, key: str, value: str) -> None:
    change = IncrementalAlterConfigsRequest.AlterableConfig(key, 0, value)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(kind, name, [change])
    with RawClient(cluster.controller_servers) as controller:
        request = IncrementalAlterConfigsRequest([resource])
        (changed,) = controller.ask(request, IncrementalAlterConfigsResponse, 1).responses
    assert changed.error_code == ErrorCode.NONE


def prepare_node(
    folder: Path,
    *,
    broker_port: int | None = None,
    files: FileSystem | None = None,
    open_files: OpenFiles | None = None,
) -> EmbeddedNode:
    """Return the only node of the cluster in `folder`; see `prepare_nodes`."""
    (place,) = places_of(folder, ClusterSize(controllers=1, brokers=1))
    nodes = prepare_nodes(
        folder, [place], broker_port=broker_port, files=files, open_files=open_files
    )
    return nodes[place.node_id]


FRAME_BYTES_MAX: Final = 1_000_000
"""The largest request that it takes."""
