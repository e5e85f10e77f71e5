"""DescribeConfigs (32): the configuration of topics, nodes and groups."""

from __future__ import annotations

from kvorum.broker.views.describe_configs import describe_configs
from kvorum.node.handlers.views import view_of, view_of_controller
from kvorum.node.services import BrokerServices, ControllerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.describe_configs import DescribeConfigsRequest
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Answer out of the broker's own metadata."""
    assert isinstance(request.body, DescribeConfigsRequest)
    return describe_configs(broker.loader.published, request.body, view_of(request, broker))


async def on_controller(request: IncomingRequest, controller: ControllerServices) -> Message:
    """Answer on a controller, for its own node."""
    assert isinstance(request.body, DescribeConfigsRequest)
    view = view_of_controller(request, controller)
    return describe_configs(controller.loader.published, request.body, view)
