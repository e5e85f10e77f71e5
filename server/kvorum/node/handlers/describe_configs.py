"""DescribeConfigs (32): the configuration of topics, nodes and groups."""

from __future__ import annotations

from random import Random

from kvorum.broker.views.describe_configs import describe_configs
from kvorum.broker.views.view import BrokerView
from kvorum.node.handlers.views import view_of
from kvorum.node.request import IncomingRequest
from kvorum.node.services import BrokerServices, ControllerServices
from kvorum.wire.messages.describe_configs import DescribeConfigsRequest
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Answer out of the broker's own metadata."""
    assert isinstance(request.body, DescribeConfigsRequest)
    return describe_configs(broker.loader.published, request.body, view_of(request, broker))


async def on_controller(request: IncomingRequest, controller: ControllerServices) -> Message:
    """Answer on a controller, for its own node."""
    assert isinstance(request.body, DescribeConfigsRequest)
    view = BrokerView(
        node_id=controller.config.node_id,
        cluster_id=controller.cluster_id,
        listener=request.listener,
        # Nothing is drawn for this answer.
        random=Random(0),  # noqa: S311 - no secret
        api_version=request.version,
        texts=controller.config.texts,
    )
    return describe_configs(controller.loader.published, request.body, view)
