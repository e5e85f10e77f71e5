"""DescribeProducers (61): what a partition knows of producers with an id; any replica answers."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.metadata.topic_names import check_topic_name
from kvorum.node.services import BrokerApi, BrokerServices, Hosting, TopicChoice
from kvorum.node.serving.request import IncomingRequest
from kvorum.storage.log.producer_state import ProducerEntry
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from kvorum.wire.primitives import Message

NO_TRANSACTION: Final = -1


async def answer(
    request: IncomingRequest[DescribeProducersRequest], broker: BrokerServices
) -> Message:
    """Describe the producers of each partition."""
    hosting = broker.hosting
    asked = (
        (topic.name, index) for topic in request.body.topics for index in topic.partition_indexes
    )
    await hosting.wait_until_led(hosting.known(asked))
    return DescribeProducersResponse(
        topics=[
            DescribeProducersResponse.TopicResponse(
                name=topic.name, partitions=_topic(topic, request, hosting)
            )
            for topic in request.body.topics
        ]
    )


def _topic(
    topic: DescribeProducersRequest.TopicRequest,
    request: IncomingRequest[DescribeProducersRequest],
    hosting: Hosting,
) -> list[DescribeProducersResponse.PartitionResponse]:
    try:
        check_topic_name(topic.name)
        found = hosting.topic(TopicChoice(topic.name), AclOperation.READ, request.access)
    except RequestError as error:
        return [_refusal(index, error.code, error.message) for index in topic.partition_indexes]
    described: list[DescribeProducersResponse.PartitionResponse] = []
    for index in topic.partition_indexes:
        try:
            partition = hosting.partition(found, index)
        except RequestError as error:
            described.append(_refusal(index, error.code))
            continue
        producers = [_state(*entry) for entry in partition.log.producers.entries.items()]
        described.append(
            DescribeProducersResponse.PartitionResponse(
                partition_index=index, active_producers=producers
            )
        )
    return described


def _state(producer_id: int, entry: ProducerEntry) -> DescribeProducersResponse.ProducerState:
    start = entry.transaction_start
    return DescribeProducersResponse.ProducerState(
        producer_id=producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=NO_TRANSACTION if start is None else start,
    )


def _refusal(
    index: int, code: ErrorCode, message: str | None = None
) -> DescribeProducersResponse.PartitionResponse:
    return DescribeProducersResponse.PartitionResponse(
        partition_index=index, error_code=code, error_message=message
    )


def _refuse(
    request: DescribeProducersRequest, error: RequestError, _version: int
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            DescribeProducersResponse.TopicResponse(
                name=topic.name,
                partitions=[_refusal(index, error.code) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


API: Final = BrokerApi(
    request=DescribeProducersRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
