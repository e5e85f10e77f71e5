"""DescribeTopicPartitions (75): the partitions of topics, page by page."""

from __future__ import annotations

from kvorum.broker.views.describe_topic_partitions import describe_topic_partitions
from kvorum.node.handlers.views import view_of
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Answer out of the broker's own metadata."""
    assert isinstance(request.body, DescribeTopicPartitionsRequest)
    return describe_topic_partitions(
        broker.loader.published, request.body, view_of(request, broker)
    )
