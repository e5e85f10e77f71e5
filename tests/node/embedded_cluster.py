"""Embedded nodes: how one is prepared, and what tests ask of a cluster of them."""

import errno
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, produce
from tests.support.replicated_topics import BROKERS, address_of, state_of
from tests.support.waiting import wait_for

from kvorum.metadata.configs_image import ResourceType
from kvorum.node.embedded.node import ClusterSize, EmbeddedNode, places_of, prepare_nodes
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.files import FileSystem, OpenFile
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
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
    set_config_at(cluster.controller_servers, kind, name, key, value)


def set_config_at(address: str, kind: ResourceType, name: str, key: str, value: str | None) -> None:
    change = IncrementalAlterConfigsRequest.AlterableConfig(key, int(value is None), value)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(kind, name, [change])
    with RawClient(address) as client:
        request = IncrementalAlterConfigsRequest([resource])
        (changed,) = client.ask(request, IncrementalAlterConfigsResponse, 1).responses
    assert changed.error_code == ErrorCode.NONE, changed.error_message


def set_quota(
    client: RawClient, entity: tuple[str, str | None], key: str, bound: float | None
) -> None:
    change = AlterClientQuotasRequest.OpData(key, bound or 0.0, bound is None)
    named = AlterClientQuotasRequest.EntityData(*entity)
    request = AlterClientQuotasRequest([AlterClientQuotasRequest.EntryData([named], [change])])
    (changed,) = client.ask(request, AlterClientQuotasResponse, 1).entries
    assert changed.error_code == ErrorCode.NONE


class FullFile:
    """An open file that takes no more bytes while its disk is full."""

    def __init__(self, opened: OpenFile, *, is_full: Callable[[], bool]) -> None:
        self._opened = opened
        self._is_full = is_full
        self.read_at, self.truncate = opened.read_at, opened.truncate
        self.size, self.sync, self.close = opened.size, opened.sync, opened.close
        self.shared_descriptor = opened.shared_descriptor

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        if self._is_full():
            raise OSError(errno.ENOSPC, "No space left on device")
        self._opened.write_at(position, data)


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


@asynccontextmanager
async def running_node(
    folder: Path, *, files: FileSystem | None = None, open_files: OpenFiles | None = None
) -> AsyncGenerator[EmbeddedNode]:
    embedded = prepare_node(folder, files=files, open_files=open_files)
    await embedded.node.start()
    try:
        yield embedded
    finally:
        await embedded.node.stop()


@contextmanager
def killed(cluster: Cluster, node_id: int) -> Generator[None]:
    cluster.kill(node_id)
    try:
        yield
    finally:
        cluster.restart(node_id)


@contextmanager
def parted(cluster: Cluster, node_id: int) -> Generator[None]:
    """Cut a broker off from the two others, though not from the controller."""
    cluster.partition({node_id}, set(BROKERS) - {node_id})
    try:
        yield
    finally:
        cluster.heal()


FRAME_BYTES_MAX: Final = 1_000_000
"""The largest request that it takes."""
