"""Fetch (1) on a broker: refused, partition by partition; partitions contain no records yet."""

from __future__ import annotations

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.permission import PER_RESOURCE
from kvorum.node.handlers.kinds import BrokerApi
from kvorum.node.handlers.no_data import error_for
from kvorum.node.raft.translation.fetch import refuse_fetch
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchTopic,
    FetchResponse,
    FetchResponseFetchableTopicResponse,
    FetchResponsePartitionData,
)
from kvorum.wire.primitives import Message


async def answer(request: IncomingRequest, broker: BrokerServices) -> Message:
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


API: Final = BrokerApi(
    key=ApiKey.FETCH,
    request=FetchRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=refuse_fetch,
)
