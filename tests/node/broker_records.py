"""Topics and configurations of embedded brokers."""

from __future__ import annotations

from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.metadata.configs_image import ResourceType
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableReplicaAssignment,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsResponse,
)
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse


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
    change = IncrementalAlterConfigsRequestAlterableConfig(key, 0, value)
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(kind, name, [change])
    with RawClient(cluster.controller_servers) as controller:
        request = IncrementalAlterConfigsRequest([resource])
        (changed,) = controller.ask(request, IncrementalAlterConfigsResponse, 1).responses
    assert changed.error_code == ErrorCode.NONE


def create_topic(cluster: Cluster, name: str, replicas: list[int]) -> None:
    topic = CreateTopicsRequestCreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[CreateTopicsRequestCreatableReplicaAssignment(0, replicas)],
    )
    with RawClient(cluster.controller_servers) as controller:
        request = CreateTopicsRequest(topics=[topic], timeout_ms=9_999)
        (created,) = controller.ask(request, CreateTopicsResponse, 7).topics
    assert created.error_code == ErrorCode.NONE
