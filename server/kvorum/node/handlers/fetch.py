"""Fetch (1) on a broker: refused, partition by partition; partitions carry no records yet."""

from __future__ import annotations

from kvorum.metadata.acl_codes import AclOperation
from kvorum.node.handlers.no_data import error_for
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchTopic,
    FetchResponse,
    FetchResponseFetchableTopicResponse,
    FetchResponsePartitionData,
)
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Refuse, without a fetch session."""
    body = request.body
    assert isinstance(body, FetchRequest)
    return FetchResponse(
        responses=[
            _refusal(
                topic,
                error_for(
                    broker.loader.published.topics,
                    name=topic.topic,
                    topic_id=topic.topic_id,
                    operation=AclOperation.READ,
                    access=request.access,
                ),
            )
            for topic in body.topics
        ]
    )


def _refusal(topic: FetchRequestFetchTopic, code: ErrorCode) -> FetchResponseFetchableTopicResponse:
    return FetchResponseFetchableTopicResponse(
        topic=topic.topic,
        topic_id=topic.topic_id,
        partitions=[
            FetchResponsePartitionData(
                partition_index=partition.partition,
                error_code=code,
                high_watermark=-1,
                records=b"",
            )
            for partition in topic.partitions
        ],
    )
