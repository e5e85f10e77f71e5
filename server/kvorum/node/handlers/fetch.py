"""Fetch (1) on a broker: refused, partition by partition; partitions carry no records yet."""

from __future__ import annotations

from kvorum.node.handlers.no_data import ERROR
from kvorum.node.request import IncomingRequest
from kvorum.node.services import BrokerServices
from kvorum.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchTopic,
    FetchResponse,
    FetchResponseFetchableTopicResponse,
    FetchResponsePartitionData,
)
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, _broker: BrokerServices) -> Message:
    """Refuse, without a fetch session."""
    body = request.body
    assert isinstance(body, FetchRequest)
    return FetchResponse(responses=[_refusal(topic) for topic in body.topics])


def _refusal(topic: FetchRequestFetchTopic) -> FetchResponseFetchableTopicResponse:
    return FetchResponseFetchableTopicResponse(
        topic=topic.topic,
        topic_id=topic.topic_id,
        partitions=[
            FetchResponsePartitionData(
                partition_index=partition.partition,
                error_code=ERROR,
                high_watermark=-1,
                records=b"",
            )
            for partition in topic.partitions
        ],
    )
