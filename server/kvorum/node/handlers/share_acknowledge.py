"""ShareAcknowledge (79): a member of a share group says what became of records that it acquired.

==========  ======================================================================================
version     brings
==========  ======================================================================================
1           the first one that Kafka serves without share groups being unstable
2           renewal of locks, and their time (KIP-1222)
==========  ======================================================================================
"""

from typing import Final

from kvorum.broker.share_session.session import FINAL_EPOCH
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.node.handlers.current_leader import CurrentLeaders
from kvorum.node.handlers.share_requests import (
    NOT_LED_HERE,
    demand_member,
    demand_share_groups,
    each_partition,
    lock_duration_ms,
    readable_topics,
    sorted_acknowledgements,
)
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[ShareAcknowledgeRequest], broker: BrokerServices
) -> Message:
    """Apply the acknowledgements of a member, and answer once they are written."""
    demand_share_groups(broker)
    member = demand_member(request)
    body = request.body
    manager = broker.share_partitions
    manager.acknowledge_session_update(member, body.share_session_epoch)
    image = broker.loader.published
    asked = [partition for partition, _ in each_partition(body.topics, image.topics)]
    readable = readable_topics(asked, request)
    wanted = sorted_acknowledgements(body.topics, request, image.topics, readable=readable)
    results = dict(wanted.refused)
    if wanted.accepted:
        results.update(await manager.acknowledge(member, wanted.accepted))
    leaders = CurrentLeaders(image, request.listener)
    topics: dict[bytes, ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = {}
    for partition, result in results.items():
        data = ShareAcknowledgeResponse.PartitionData(
            partition_index=partition.partition,
            error_code=result.code,
            error_message=result.message,
        )
        if result.code in NOT_LED_HERE:
            leader = leaders.of("", partition.topic_id, partition.partition)
            data.current_leader = ShareAcknowledgeResponse.LeaderIdAndEpoch(*leader)
        topic = topics.get(partition.topic_id)
        if topic is None:
            topic = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse(partition.topic_id, [])
            topics[partition.topic_id] = topic
        topic.partitions.append(data)
    if body.share_session_epoch == FINAL_EPOCH:
        manager.release_session(member)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_duration_ms(manager, member),
        responses=list(topics.values()),
        node_endpoints=[
            ShareAcknowledgeResponse.NodeEndpoint(*endpoint) for endpoint in leaders.endpoints
        ],
    )


def _refuse(
    _: ShareAcknowledgeRequest, error: RequestError, _version: int
) -> ShareAcknowledgeResponse:
    # As in Kafka, the text of the error stays behind.
    return ShareAcknowledgeResponse(error_code=error.code)


API: Final = BrokerApi(
    request=ShareAcknowledgeRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
