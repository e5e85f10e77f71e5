"""OffsetForLeaderEpoch (23): where a leader epoch ends, in partitions that this broker leads."""

from typing import Final

from kvorum.broker.epoch_end_offset import end_of_epoch
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.metadata.topics_image import TopicImage
from kvorum.node.services import BrokerApi, BrokerServices, Hosting, TopicChoice
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[OffsetForLeaderEpochRequest], broker: BrokerServices
) -> Message:
    """Answer partition by partition, after partitions that were created just now have their logs.

    A follower needs no permission on the topic.
    """
    hosting = broker.hosting
    is_broker = request.access.allows_on_cluster(AclOperation.CLUSTER_ACTION, logs_denied=False)
    asked = (
        (topic.topic, requested.partition)
        for topic in request.body.topics
        for requested in topic.partitions
    )
    await hosting.wait_until_led(hosting.known(asked))
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=_topic(topic, request, hosting, is_broker=is_broker)
            )
            for topic in request.body.topics
        ]
    )


def _topic(
    topic: OffsetForLeaderEpochRequest.OffsetForLeaderTopic,
    request: IncomingRequest[OffsetForLeaderEpochRequest],
    hosting: Hosting,
    *,
    is_broker: bool,
) -> list[OffsetForLeaderEpochResponse.EpochEndOffset]:
    choice = TopicChoice(topic.topic)
    try:
        found = (
            hosting.topic_for_broker(choice)
            if is_broker
            else hosting.topic(choice, AclOperation.DESCRIBE, request.access)
        )
    except RequestError as error:
        return [_refusal(requested.partition, error.code) for requested in topic.partitions]
    return [_partition(requested, found, hosting) for requested in topic.partitions]


def _partition(
    requested: OffsetForLeaderEpochRequest.OffsetForLeaderPartition,
    topic: TopicImage,
    hosting: Hosting,
) -> OffsetForLeaderEpochResponse.EpochEndOffset:
    try:
        partition = hosting.partition(topic, requested.partition)
        partition.check_current_leader_epoch(requested.current_leader_epoch)
        partition.demand_leader()
    except (RequestError, LeaderRefusesError) as error:
        return _refusal(requested.partition, error.code)
    epoch, end_offset = end_of_epoch(partition.log.local_log, requested.leader_epoch)
    return OffsetForLeaderEpochResponse.EpochEndOffset(
        partition=requested.partition, leader_epoch=epoch, end_offset=end_offset
    )


def _refusal(index: int, code: ErrorCode) -> OffsetForLeaderEpochResponse.EpochEndOffset:
    return OffsetForLeaderEpochResponse.EpochEndOffset(error_code=code, partition=index)


def _refuse(
    request: OffsetForLeaderEpochRequest, error: RequestError, _version: int
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _refusal(requested.partition, error.code) for requested in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


API: Final = BrokerApi(
    request=OffsetForLeaderEpochRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
