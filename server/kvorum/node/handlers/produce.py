"""Produce (0): refused, partition by partition; partitions contain no records yet."""

from __future__ import annotations

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.permission import PER_RESOURCE
from kvorum.metadata.request_error import RequestError
from kvorum.node.errors import CloseConnectionError
from kvorum.node.handlers.kinds import BrokerApi
from kvorum.node.handlers.no_data import ERROR, MESSAGE, error_for
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.api_keys import ApiKey
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


async def answer(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Refuse; with acks=0, close the connection, as Kafka's broker does."""
    body = request.body
    assert isinstance(body, ProduceRequest)
    if body.acks == NO_ACKNOWLEDGEMENT:
        raise CloseConnectionError(f"records without acknowledgement. {MESSAGE}")
    return ProduceResponse(
        responses=[_without_records(topic, request, broker) for topic in body.topic_data]
    )


def _without_records(
    topic: ProduceRequestTopicProduceData, request: IncomingRequest, broker: BrokerServices
) -> ProduceResponseTopicProduceResponse:
    code = error_for(
        broker.loader.published.topics,
        name=topic.name,
        topic_id=topic.topic_id,
        operation=AclOperation.WRITE,
        access=request.access,
    )
    return _refused_topic(topic, code, MESSAGE if code == ERROR else None)


def _refused_topic(
    topic: ProduceRequestTopicProduceData, code: ErrorCode, message: str | None
) -> ProduceResponseTopicProduceResponse:
    return ProduceResponseTopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[
            ProduceResponsePartitionProduceResponse(
                index=partition.index,
                error_code=code,
                base_offset=-1,
                error_message=message,
            )
            for partition in topic.partition_data
        ],
    )


def _refuse(request: ProduceRequest, error: RequestError, _version: int) -> ProduceResponse:
    """Refuse every partition."""
    return ProduceResponse(
        responses=[_refused_topic(topic, error.code, error.message) for topic in request.topic_data]
    )


API: Final = BrokerApi(
    key=ApiKey.PRODUCE,
    request=ProduceRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=_refuse,
)
