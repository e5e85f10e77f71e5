"""Metadata (3): brokers, topics and partitions, for every client."""

from collections.abc import Iterable
from dataclasses import dataclass

from kvorum.broker.view_api import BrokerView
from kvorum.broker.views.metadata_topic import (
    find_topic,
    find_topic_by_id,
    may_describe,
    operations_on,
    topic_names,
)
from kvorum.broker.views.partitions import (
    NO_NODE,
    alive_replicas,
    has_listener,
    named_controller,
    offline_replicas,
)
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.topic_names import INTERNAL_TOPICS, reason_name_is_illegal
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kvorum.wire.uuid_text import ZERO_UUID

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
FIRST_VERSION_WITH_LISTENER_ERROR = 6
FIRST_VERSION_WITH_TOPIC_IDS = 12
VERSIONS_WITH_CLUSTER_OPERATIONS = range(8, 11)
_MISSING = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION})


@dataclass(frozen=True, slots=True)
class MetadataAnswer:
    """The response, and the missing topics that the broker has to create for the client."""

    response: MetadataResponse
    topics_to_create: tuple[str, ...] = ()


def metadata(image: MetadataImage, request: MetadataRequest, view: BrokerView) -> MetadataAnswer:
    """Describe brokers and topics by the broker's image; collect missing topics to create.

    Raises `RequestError` INVALID_REQUEST for a request that its version does not allow.
    """
    wants_all = request.topics is None or (not request.topics and view.api_version == 0)
    _check_request(request, view.api_version)
    topics = _all_topics(image, view) if wants_all else _wanted_topics(image, request, view)
    to_create: list[str] = []
    if view.is_auto_create_enabled and request.allow_auto_topic_creation and not wants_all:
        to_create = _topics_to_create(topics, view)
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(broker.id, endpoint.host, endpoint.port, broker.rack)
            for broker in image.cluster.unfenced_brokers()
            if (endpoint := broker.endpoint(view.listener)) is not None
        ],
        cluster_id=view.cluster_id,
        controller_id=named_controller(image.cluster, view.quorum_leader_id),
        topics=topics,
    )
    _add_operations(response, request, view)
    return MetadataAnswer(response, tuple(to_create))


def _check_request(request: MetadataRequest, api_version: int) -> None:
    if api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        return
    for topic in request.topics or ():
        if topic.name is None:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"Topic name can not be null for version {api_version}"
            )
        if topic.topic_id != ZERO_UUID:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"Topic IDs are not supported in requests for version {api_version}",
            )


def _all_topics(image: MetadataImage, view: BrokerView) -> list[MetadataResponseTopic]:
    return [
        _topic(image, topic, view)
        for name in sorted(topic_names(image, view))
        if may_describe(name, view, logs_denied=False)
        and (topic := find_topic(image, name, view)) is not None
    ]


def _topics_to_create(topics: list[MetadataResponseTopic], view: BrokerView) -> list[str]:
    """Return the names among `topics` to create; refuse those that the client may not create.

    A client that may create nothing hears of that before it hears that a name is illegal.
    """
    missing = [topic for topic in topics if topic.error_code in _MISSING]
    if missing and not view.access.allows_on_cluster(AclOperation.CREATE, logs_denied=False):
        for topic in missing:
            assert topic.name is not None
            if not view.access.allows_on_topic(AclOperation.CREATE, topic.name):
                topic.error_code = REFUSED
    return [
        topic.name
        for topic in missing
        if topic.name is not None and topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]


def _wanted_topics(
    image: MetadataImage, request: MetadataRequest, view: BrokerView
) -> list[MetadataResponseTopic]:
    """Return an entry for each requested topic; if any topic has an id, only ids count.

    The entry of a topic that the client may not describe does not reveal whether the topic exists.
    """
    wanted = request.topics or []
    ids = dict.fromkeys(topic.topic_id for topic in wanted if topic.topic_id != ZERO_UUID)
    if ids:
        found = {topic_id: find_topic_by_id(image, topic_id, view) for topic_id in ids}
        known = [topic for topic in found.values() if topic is not None]
        unknown = [topic_id for topic_id, topic in found.items() if topic is None]
        # The id of a topic is not secret, but its name may be.
        return [
            MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
            )
            for topic_id in unknown
        ] + [
            _topic(image, topic, view)
            if may_describe(topic.name, view)
            else MetadataResponseTopic(error_code=REFUSED, name=None, topic_id=topic.id)
            for topic in known
        ]
    names = dict.fromkeys(topic.name for topic in wanted if topic.name is not None)
    return _named_topics(image, names, view)


def _named_topics(
    image: MetadataImage, names: Iterable[str], view: BrokerView
) -> list[MetadataResponseTopic]:
    existing: list[MetadataResponseTopic] = []
    missing: list[MetadataResponseTopic] = []
    refused: list[MetadataResponseTopic] = []
    for name in names:
        topic = find_topic(image, name, view)
        if not may_describe(name, view):
            refused.append(MetadataResponseTopic(error_code=REFUSED, name=name))
        elif topic is None:
            missing.append(_unknown_name(name))
        else:
            existing.append(_topic(image, topic, view))
    return existing + missing + refused


def _unknown_name(name: str) -> MetadataResponseTopic:
    is_legal = reason_name_is_illegal(name) is None
    return MetadataResponseTopic(
        error_code=(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION
        ),
        name=name,
        is_internal=name in INTERNAL_TOPICS,
    )


def _topic(image: MetadataImage, topic: TopicImage, view: BrokerView) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _partition(image, index, partition, view)
            for index, partition in topic.sorted_partitions()
        ],
    )


def _partition(
    image: MetadataImage, index: int, partition: PartitionRegistration, view: BrokerView
) -> MetadataResponsePartition:
    cluster, listener = image.cluster, view.listener
    replicas, isr = list(partition.replicas), list(partition.isr)
    if view.api_version == 0:
        # The oldest clients must not get the ids of brokers whose addresses they do not get.
        replicas = alive_replicas(cluster, replicas, listener)
        isr = alive_replicas(cluster, isr, listener)
    leads = has_listener(cluster, partition.leader, listener)
    return MetadataResponsePartition(
        error_code=_partition_error(
            image,
            partition,
            view,
            is_complete=(
                len(replicas) == len(partition.replicas) and len(isr) == len(partition.isr)
            ),
        ),
        partition_index=index,
        leader_id=partition.leader if leads else NO_NODE,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline_replicas(cluster, partition, listener),
    )


def _partition_error(
    image: MetadataImage, partition: PartitionRegistration, view: BrokerView, *, is_complete: bool
) -> ErrorCode:
    if partition.leader not in image.cluster.brokers:
        return ErrorCode.LEADER_NOT_AVAILABLE
    if not has_listener(image.cluster, partition.leader, view.listener):
        return (
            ErrorCode.LISTENER_NOT_FOUND
            if view.api_version >= FIRST_VERSION_WITH_LISTENER_ERROR
            else ErrorCode.LEADER_NOT_AVAILABLE
        )
    return ErrorCode.NONE if is_complete else ErrorCode.REPLICA_NOT_AVAILABLE


def _add_operations(response: MetadataResponse, request: MetadataRequest, view: BrokerView) -> None:
    if view.api_version in VERSIONS_WITH_CLUSTER_OPERATIONS and (
        request.include_cluster_authorized_operations
    ):
        response.cluster_authorized_operations = view.access.operations_on_cluster()
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.name is not None and topic.error_code != REFUSED:
                topic.topic_authorized_operations = operations_on(topic.name, view)
