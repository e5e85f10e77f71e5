"""Produce (0): refused, partition by partition; partitions carry no records yet."""

from __future__ import annotations

from kvorum.metadata.acl_codes import AclOperation
from kvorum.node.errors import CloseConnectionError
from kvorum.node.handlers.no_data import ERROR, MESSAGE, error_for
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestTopicProduceData,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from kvorum.wire.primitives import Message

NO_ACKNOWLEDGEMENT = 0


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Refuse; who wants no answer learns it, as from any broker, by the end of the connection."""
    body = request.body
    assert isinstance(body, ProduceRequest)
    if body.acks == NO_ACKNOWLEDGEMENT:
        raise CloseConnectionError(f"records without acknowledgement. {MESSAGE}")
    return ProduceResponse(
        responses=[
            _refusal(
                topic,
                error_for(
                    broker.loader.published.topics,
                    name=topic.name,
                    topic_id=topic.topic_id,
                    operation=AclOperation.WRITE,
                    access=request.access,
                ),
            )
            for topic in body.topic_data
        ]
    )


def _refusal(
    topic: ProduceRequestTopicProduceData, code: ErrorCode
) -> ProduceResponseTopicProduceResponse:
    return ProduceResponseTopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[
            ProduceResponsePartitionProduceResponse(
                index=partition.index,
                error_code=code,
                base_offset=-1,
                error_message=MESSAGE if code == ERROR else None,
            )
            for partition in topic.partition_data
        ],
    )
