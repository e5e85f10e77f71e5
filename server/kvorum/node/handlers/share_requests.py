"""The code that the handlers of share groups share."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from kvorum.broker.share_partition.acknowledgement import ShareAcknowledgementBatch
from kvorum.broker.share_partition.acknowledgement_checks import are_valid
from kvorum.broker.share_session.session import ShareSessionKey
from kvorum.broker.share_session.topic_id_partition import TopicIdPartition
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError
from kvorum.metadata.features import SHARE_VERSION_FEATURE
from kvorum.metadata.topics_image import TopicsImage
from kvorum.node.broker.share_fetch.share_fetch import AcknowledgeResult
from kvorum.node.broker.share_fetch.share_partition_manager import SharePartitionManager
from kvorum.node.handlers.group_requests import require_on_group
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from kvorum.wire.messages.share_fetch import ShareFetchRequest

FIRST_VERSION_WITH_RENEWAL: Final = 2
NOT_LED_HERE: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
_MEMBER_ID_UNITS_MAX: Final = 36
"""The greatest length of a member's id, in UTF-16 units."""
_UTF_16_UNIT_BYTES: Final = 2


class _Batch(Protocol):
    """Acknowledgements in a request."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class _Partition(Protocol):
    """A partition in a request."""

    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[_Batch]:
        """The acknowledgements of its records."""
        ...


class _Topic(Protocol):
    """A topic in a request."""

    topic_id: bytes

    @property
    def partitions(self) -> Sequence[_Partition]:
        """Its partitions."""
        ...


class Acknowledgements(NamedTuple):
    """The acknowledgements of a request: those to apply, and the partitions that are refused."""

    accepted: Mapping[TopicIdPartition, Sequence[ShareAcknowledgementBatch]]
    refused: Mapping[TopicIdPartition, AcknowledgeResult]


def demand_share_groups(broker: BrokerServices) -> None:
    """Raise RequestError UNSUPPORTED_VERSION unless the cluster has share groups (KIP-932)."""
    if broker.loader.published.features.level(SHARE_VERSION_FEATURE) < 1:
        raise RequestError.with_default_message(ErrorCode.UNSUPPORTED_VERSION)


def demand_member(
    request: IncomingRequest[ShareFetchRequest] | IncomingRequest[ShareAcknowledgeRequest],
) -> ShareSessionKey:
    """Return the member that a request is from.

    Raises RequestError INVALID_REQUEST for ids that none has, GROUP_AUTHORIZATION_FAILED for a
    client that may not read the group.
    """
    body = request.body
    if body.group_id is None:
        raise RequestError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    require_on_group(request, AclOperation.READ, body.group_id)
    member_id = body.member_id
    if member_id is None or not is_member_id(member_id):
        raise RequestError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return ShareSessionKey(body.group_id, member_id)


def is_member_id(text: str) -> bool:
    """Return whether a member can have an id."""
    return 0 < _utf_16_units(text) <= _MEMBER_ID_UNITS_MAX


def lock_duration_ms(manager: SharePartitionManager, member: ShareSessionKey) -> int:
    """Return the time for which a member has what it acquires."""
    return manager.configs.config(member.group_id).partition.record_lock_duration_ms


def _utf_16_units(text: str) -> int:
    return len(text.encode("utf-16-be", "surrogatepass")) // _UTF_16_UNIT_BYTES


def name_of(topics: TopicsImage, topic_id: bytes) -> str | None:
    """Return the name of a topic; None for an id that none has."""
    topic = topics.by_id.get(topic_id)
    return None if topic is None else topic.name


def each_partition(
    requested: Iterable[_Topic], topics: TopicsImage
) -> Iterator[tuple[TopicIdPartition, Sequence[_Batch]]]:
    """Yield the partitions of a request, each with its acknowledgements."""
    for topic in requested:
        name = name_of(topics, topic.topic_id)
        for one in topic.partitions:
            partition = TopicIdPartition(topic.topic_id, one.partition_index, name)
            yield partition, one.acknowledgement_batches


def readable_topics(
    partitions: Iterable[TopicIdPartition],
    request: IncomingRequest[ShareFetchRequest] | IncomingRequest[ShareAcknowledgeRequest],
) -> frozenset[str]:
    """Return the topics that the client may read.

    As in Kafka, each topic is asked about once in a request, and each of its partitions counts in
    the authorizer's log.
    """
    names = [one.topic for one in dict.fromkeys(partitions) if one.topic is not None]
    return request.access.allowed_topics(AclOperation.READ, names)


def sorted_acknowledgements(
    requested: Iterable[_Topic],
    request: IncomingRequest[ShareFetchRequest] | IncomingRequest[ShareAcknowledgeRequest],
    topics: TopicsImage,
    *,
    readable: Container[str],
) -> Acknowledgements:
    """Return what a member may acknowledge, and the codes of what it may not.

    As in Kafka, a partition that comes without acknowledgements is answered beside others alone.
    """
    accepted: dict[TopicIdPartition, Sequence[ShareAcknowledgementBatch]] = {}
    refused: dict[TopicIdPartition, AcknowledgeResult] = {}
    empty: dict[TopicIdPartition, AcknowledgeResult] = {}
    supports_renewal = request.version >= FIRST_VERSION_WITH_RENEWAL
    asked = dict(each_partition(requested, topics))
    for partition, wanted in asked.items():
        batches = [
            ShareAcknowledgementBatch(one.first_offset, one.last_offset, one.acknowledge_types)
            for one in wanted
        ]
        if partition.topic is None:
            refused[partition] = AcknowledgeResult(ErrorCode.UNKNOWN_TOPIC_ID)
        elif not are_valid(
            batches, supports_renewal=supports_renewal, renews=request.body.is_renew_ack
        ):
            refused[partition] = AcknowledgeResult(ErrorCode.INVALID_REQUEST)
        elif partition.topic not in readable:
            refused[partition] = AcknowledgeResult(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif partition.partition not in topics.by_id[partition.topic_id].partitions:
            refused[partition] = AcknowledgeResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif batches:
            accepted[partition] = batches
        else:
            empty[partition] = AcknowledgeResult(ErrorCode.NONE)
    return Acknowledgements(accepted, {**refused, **empty} if accepted else refused)
