"""DescribeCluster (60): the brokers of the cluster, or, asked of a controller, the controllers."""

from __future__ import annotations

from kvorum.broker.views.describe_cluster import describe_cluster
from kvorum.node.handlers.views import view_of
from kvorum.node.services import BrokerServices, ControllerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Name the brokers."""
    assert isinstance(request.body, DescribeClusterRequest)
    return describe_cluster(broker.loader.published, request.body, view_of(request, broker))


async def on_controller(request: IncomingRequest, controller: ControllerServices) -> Message:
    """Name the controllers; any controller can."""
    return controller.shell.read(request)
