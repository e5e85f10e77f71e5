"""What the broker's views need to know of the node and the request."""

from __future__ import annotations

from random import Random

from kvorum.broker.views.view import BrokerView
from kvorum.node.services import BrokerServices, ControllerServices
from kvorum.node.serving.request import IncomingRequest


def view_of(request: IncomingRequest, broker: BrokerServices) -> BrokerView:
    """Return who answers `request`, and where it came in."""
    config = broker.config
    return BrokerView(
        node_id=config.node_id,
        cluster_id=broker.cluster_id,
        listener=request.listener,
        random=broker.random,
        api_version=request.version,
        texts=config.texts,
        is_auto_create_enabled=config.topics.is_auto_create_enabled,
        request_partitions_max=config.network.request_partitions_max,
        access=request.access,
    )


def view_of_controller(request: IncomingRequest, controller: ControllerServices) -> BrokerView:
    """Return the same for a controller, which answers some requests as a broker does."""
    return BrokerView(
        node_id=controller.config.node_id,
        cluster_id=controller.cluster_id,
        listener=request.listener,
        # Nothing is drawn for these answers.
        random=Random(0),  # noqa: S311 - no secret
        api_version=request.version,
        texts=controller.config.texts,
        access=request.access,
    )
