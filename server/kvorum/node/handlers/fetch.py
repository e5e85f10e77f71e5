"""Fetch (1) on a broker: the metadata topic, where that may be read; all else is refused.

Partitions of other topics contain no records yet. There are no fetch sessions: every response has
session id 0, upon which clients send full requests.
"""

from __future__ import annotations

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.permission import PER_RESOURCE
from kvorum.metadata.request_error import RequestError
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.node.broker.metadata_fetch import FetchParams, FetchPartitionData, fetch
from kvorum.node.broker.metadata_topic import MetadataTopic
from kvorum.node.handlers.kinds import BrokerApi
from kvorum.node.handlers.no_data import error_for
from kvorum.node.raft.translation.fetch import refuse_fetch
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
    FetchResponseFetchableTopicResponse,
    FetchResponsePartitionData,
)
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import METADATA_TOPIC_ID

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
FIRST_VERSION_WITH_STORAGE_ERROR: Final = 6


async def answer(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Read the metadata topic, and refuse every other partition."""
    body = request.body
    assert isinstance(body, FetchRequest)
    served = broker.metadata_topic
    if served is None:
        return FetchResponse(responses=_refusals(body.topics, request, broker))
    if body.session_epoch > 0:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    asked = [topic for topic in body.topics if _is_metadata(topic)]
    others = [topic for topic in body.topics if not _is_metadata(topic)]
    responses: list[FetchResponseFetchableTopicResponse] = []
    if asked:
        # A client that has a refusal coming gets it at once.
        responses.append(await _metadata(asked, request, served, may_wait=not others))
    return FetchResponse(responses=responses + _refusals(others, request, broker))


def _is_metadata(topic: FetchRequestFetchTopic) -> bool:
    return topic.topic == CLUSTER_METADATA_TOPIC or topic.topic_id == METADATA_TOPIC_ID


async def _metadata(
    topics: list[FetchRequestFetchTopic],
    request: IncomingRequest,
    served: MetadataTopic,
    *,
    may_wait: bool,
) -> FetchResponseFetchableTopicResponse:
    """Return the response of the metadata topic; a partition asked for twice is read once."""
    body = request.body
    assert isinstance(body, FetchRequest)
    # As in Kafka, what is asked last about a partition counts.
    wishes = {wish.partition: wish for topic in topics for wish in topic.partitions}
    may_wait = may_wait and wishes.keys() == {CLUSTER_METADATA_PARTITION}
    partitions: list[FetchResponsePartitionData] = []
    for index, wish in wishes.items():
        data = FetchPartitionData(_error_of(index, request))
        if data.error is ErrorCode.NONE:
            data = await fetch(served, _params(body, wish, may_wait=may_wait))
        partitions.append(_partition(index, data, request))
    return FetchResponseFetchableTopicResponse(
        topic=topics[0].topic, topic_id=topics[0].topic_id, partitions=partitions
    )


def _error_of(index: int, request: IncomingRequest) -> ErrorCode:
    """Return the error of a request for a partition of the metadata topic, before it is read."""
    body = request.body
    assert isinstance(body, FetchRequest)
    if not request.access.allows_on_cluster(AclOperation.DESCRIBE):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if index != CLUSTER_METADATA_PARTITION:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if max(body.replica_id, body.replica_state.replica_id) >= 0:
        # Replicas of the metadata log fetch from the leader of the quorum.
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if body.isolation_level not in {READ_UNCOMMITTED, READ_COMMITTED}:
        raise RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR)
    return ErrorCode.NONE


def _params(body: FetchRequest, wish: FetchRequestFetchPartition, *, may_wait: bool) -> FetchParams:
    return FetchParams(
        offset=wish.fetch_offset,
        max_bytes=min(wish.partition_max_bytes, body.max_bytes),
        min_bytes=body.min_bytes,
        max_wait_ms=body.max_wait_ms if may_wait else 0,
    )


def _partition(
    index: int, data: FetchPartitionData, request: IncomingRequest
) -> FetchResponsePartitionData:
    body = request.body
    assert isinstance(body, FetchRequest)
    error = data.error
    is_unknown_to_client = request.version < FIRST_VERSION_WITH_STORAGE_ERROR
    if error is ErrorCode.KAFKA_STORAGE_ERROR and is_unknown_to_client:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    return FetchResponsePartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=data.high_watermark,
        # There are no transactions of producers in this log.
        last_stable_offset=data.high_watermark,
        log_start_offset=data.log_start_offset,
        aborted_transactions=[] if body.isolation_level == READ_COMMITTED else None,
        records=data.records,
    )


def _refusals(
    topics: list[FetchRequestFetchTopic], request: IncomingRequest, broker: BrokerServices
) -> list[FetchResponseFetchableTopicResponse]:
    return [
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
        for topic in topics
    ]


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
