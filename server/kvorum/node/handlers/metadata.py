"""Metadata (3): brokers, topics and partitions; a topic that is missed may be created."""

from __future__ import annotations

from kvorum.broker.views.metadata import metadata
from kvorum.node.handlers.views import view_of
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.metadata import MetadataRequest
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Answer out of the broker's own metadata, and have missing topics created meanwhile."""
    assert isinstance(request.body, MetadataRequest)
    answer = metadata(broker.loader.published, request.body, view_of(request, broker))
    broker.topic_creator.begin(answer.topics_to_create, request)
    return answer.response
