"""Produce (0): refused, partition by partition; partitions carry no records yet."""

from __future__ import annotations

from kvorum.node.errors import CloseConnectionError
from kvorum.node.handlers.no_data import ERROR, MESSAGE
from kvorum.node.request import IncomingRequest
from kvorum.node.services import BrokerServices
from kvorum.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestTopicProduceData,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from kvorum.wire.primitives import Message

NO_ACKNOWLEDGEMENT = 0


async def on_broker(request: IncomingRequest, _broker: BrokerServices) -> Message:
    """Refuse; who wants no answer learns it, as from any broker, by the end of the connection."""
    body = request.body
    assert isinstance(body, ProduceRequest)
    if body.acks == NO_ACKNOWLEDGEMENT:
        raise CloseConnectionError(f"records without acknowledgement. {MESSAGE}")
    return ProduceResponse(responses=[_refusal(topic) for topic in body.topic_data])


def _refusal(topic: ProduceRequestTopicProduceData) -> ProduceResponseTopicProduceResponse:
    return ProduceResponseTopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[
            ProduceResponsePartitionProduceResponse(
                index=partition.index, error_code=ERROR, base_offset=-1, error_message=MESSAGE
            )
            for partition in topic.partition_data
        ],
    )
