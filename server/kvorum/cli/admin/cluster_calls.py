"""Calls that describe the nodes of a cluster, and that unregister one."""

from collections.abc import Iterable
from dataclasses import dataclass

from kvorum.cli.admin.client import CONTROLLER_ENDPOINT, AdminClient, Call
from kvorum.cli.admin.command import print_refused_unregistration
from kvorum.cli.admin.errors import NotSupportedByNodeError, refusal
from kvorum.cli.admin.quorum_calls import final
from kvorum.metadata.java_hash import integer_table_order
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from kvorum.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from kvorum.wire.messages.unregister_controller import (
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)
from kvorum.wire.primitives import Message

_Unregistered = UnregisterBrokerResponse | UnregisterControllerResponse
_BROKER_ENDPOINT = 1
_NAME = "listNodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEndpoint:
    """The address of a broker or a controller for clients."""

    node_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """A cluster's id, None where it tells none, and its brokers or controllers.

    They come in the order in which Kafka's admin client lists them.
    """

    cluster_id: str | None
    endpoints: tuple[NodeEndpoint, ...]


async def describe_cluster(client: AdminClient, *, includes_fenced: bool = False) -> ClusterInfo:
    """Return the nodes that the client asks: brokers, fenced ones only if wanted, or controllers.

    Brokers that do not know DescribeCluster are asked for their metadata, which has no fenced
    ones.
    """
    endpoint_type = CONTROLLER_ENDPOINT if client.asks_controllers else _BROKER_ENDPOINT
    call = Call(
        name=_NAME,
        request=lambda _: DescribeClusterRequest(
            endpoint_type=endpoint_type, include_fenced_brokers=includes_fenced
        ),
        response_class=DescribeClusterResponse,
        read=_described,
    )
    try:
        return await client.call(call)
    except NotSupportedByNodeError:
        if client.asks_controllers or includes_fenced:
            raise
    return await client.call(_METADATA_CALL)


def unregister_call(kind: str, node_id: int, *, client_id: str) -> Call[_Unregistered, None]:
    """Return the call that removes the registration of a broker or a controller (KIP-1312).

    `kind` is "broker" or "controller". A response that refuses it for good is logged.
    """
    request: Message
    response_class: type[_Unregistered]
    if kind == "broker":
        request, response_class = UnregisterBrokerRequest(node_id), UnregisterBrokerResponse
    else:
        request, response_class = UnregisterControllerRequest(node_id), UnregisterControllerResponse

    def read(response: _Unregistered) -> None:
        if response.error_code == ErrorCode.NONE:
            return
        error = refusal(response.error_code, response.error_message)
        if response.error_code == ErrorCode.REQUEST_TIMED_OUT:
            raise error
        print_refused_unregistration(client_id, kind, node_id, response.error_message)
        raise final(error)

    return Call(
        name=f"unregister{kind.capitalize()}",
        request=lambda _: request,
        response_class=response_class,
        read=read,
    )


def _described(response: DescribeClusterResponse) -> ClusterInfo:
    if response.error_code != ErrorCode.NONE:
        raise final(refusal(response.error_code, response.error_message))
    endpoints = (
        NodeEndpoint(
            node_id=one.broker_id,
            host=one.host,
            port=one.port,
            rack=one.rack,
            is_fenced=one.is_fenced,
        )
        for one in response.brokers
    )
    return ClusterInfo(response.cluster_id, _in_javas_order(endpoints))


def _described_by_metadata(response: MetadataResponse) -> ClusterInfo:
    endpoints = (
        NodeEndpoint(node_id=one.node_id, host=one.host, port=one.port, rack=one.rack)
        for one in response.brokers
    )
    return ClusterInfo(response.cluster_id, _in_javas_order(endpoints))


def _in_javas_order(endpoints: Iterable[NodeEndpoint]) -> tuple[NodeEndpoint, ...]:
    by_id = {endpoint.node_id: endpoint for endpoint in endpoints}
    return tuple(by_id[node_id] for node_id in integer_table_order(by_id))


_METADATA_CALL = Call(
    name=_NAME,
    request=lambda _: MetadataRequest(topics=[]),
    response_class=MetadataResponse,
    read=_described_by_metadata,
)
