"""CreatePartitions (37): adds partitions to topics."""

from collections import Counter
from typing import Final

from kvorum.controller.api import (
    ControllerApi,
    ControllerResult,
    Filtered,
    MutationQuotaTerms,
    own_timeout_ms,
)
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.new_partitions import (
    NOBODY_ACTIVE,
    Placement,
    check_assignment,
    check_some_replica_is_active,
    check_total,
    new_partition,
    new_partition_record,
)
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.standard_authorizer import Access
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kvorum.wire.messages.create_partitions import (
    CreatePartitionsRequestCreatePartitionsTopic as CreatePartitionsTopic,
)
from kvorum.wire.messages.create_partitions import (
    CreatePartitionsResponseCreatePartitionsTopicResult as CreatePartitionsTopicResult,
)

SLOT_COUNT_MIN: Final = 2
LOAD_FACTOR: Final = 0.75
HASH_FACTOR: Final = 0x9E37_79B9_7F4A_7C15
HASH_BITS: Final = 64


def create_partitions(
    image: MetadataImage, request: CreatePartitionsRequest, context: ControllerRequestContext
) -> ControllerResult[CreatePartitionsResponse]:
    """Add partitions to each topic on its own; duplicate names are refused first.

    Raises `RequestError` where the topics together get more partitions than a request may add.
    """
    counts = Counter(topic.name for topic in request.topics)
    check_total(
        (_additional(image, topic) for topic in request.topics if counts[topic.name] == 1),
        "Excessively large number of additional partitions per request.",
    )
    results = [
        _result(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        for name, count in counts.items()
        if count > 1
    ]
    records: list[RecordAndVersion] = []
    for topic in request.topics:
        if counts[topic.name] > 1:
            continue
        try:
            records.extend(_add_partitions(image, topic, context))
            results.append(_result(topic.name, ErrorCode.NONE, None))
        except RequestError as error:
            results.append(_result(topic.name, error.code, error.message))
    return ControllerResult(
        CreatePartitionsResponse(results=results), () if request.validate_only else tuple(records)
    )


def _additional(image: MetadataImage, wanted: CreatePartitionsTopic) -> int:
    topic = image.topics.by_name(wanted.name)
    return 0 if topic is None else max(wanted.count - len(topic.partitions), 0)


def _result(name: str, code: ErrorCode, message: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)


def _add_partitions(
    image: MetadataImage, wanted: CreatePartitionsTopic, context: ControllerRequestContext
) -> list[RecordAndVersion]:
    topic = image.topics.by_name(wanted.name)
    if topic is None:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    first_index = len(topic.partitions)
    _check_count(topic, wanted)
    context.record_mutations(wanted.count - first_index)
    rules = ClusterRules(image, context.settings)
    return [
        new_partition_record(
            image, new_partition(rules, replicas), topic_id=topic.id, index=first_index + step
        )
        for step, replicas in enumerate(_replicas(image, topic, wanted, context))
    ]


def _check_count(topic: TopicImage, wanted: CreatePartitionsTopic) -> None:
    present = len(topic.partitions)
    if wanted.count == present:
        raise RequestError(
            ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s)."
        )
    if wanted.count < present:
        raise RequestError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {wanted.count} "
            "would not be an increase.",
        )
    additional = wanted.count - present
    if wanted.assignments is not None and len(wanted.assignments) != additional:
        raise RequestError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(wanted.assignments)} assignment(s) were specified.",
        )


def _replicas(
    image: MetadataImage,
    topic: TopicImage,
    wanted: CreatePartitionsTopic,
    context: ControllerRequestContext,
) -> list[list[int]]:
    """Return the replicas of each partition to add."""
    replication_factor = len(topic.partitions[model_partition(len(topic.partitions))].replicas)
    if wanted.assignments is not None:
        return _assigned(image, topic, wanted, replication_factor)
    additional = wanted.count - len(topic.partitions)
    try:
        return Placement(image, context).place(
            partition_count=additional, replication_factor=replication_factor
        )
    except RequestError as error:
        if error.message != NOBODY_ACTIVE:
            raise
        raise RequestError(
            error.code,
            f"Unable to replicate the partition {replication_factor} time(s): {NOBODY_ACTIVE}",
        ) from error


def model_partition(partition_count: int) -> int:
    """Return the partition of a topic whose replication factor new partitions get.

    Partitions may differ in it during a reassignment. Kafka takes the partition that its hash table
    yields first: among those in the first slot, the one that was added last.
    """
    slot_count = SLOT_COUNT_MIN
    while partition_count * LOAD_FACTOR > slot_count:
        slot_count *= 2
    shift = HASH_BITS + 1 - slot_count.bit_length()
    return next(
        index
        for index in reversed(range(partition_count))
        if index * HASH_FACTOR % 2**HASH_BITS >> shift == 0
    )


def _assigned(
    image: MetadataImage, topic: TopicImage, wanted: CreatePartitionsTopic, replication_factor: int
) -> list[list[int]]:
    assigned: list[list[int]] = []
    for step, assignment in enumerate(wanted.assignments or ()):
        replicas = assignment.broker_ids
        check_assignment(image.cluster, replicas, replication_factor=replication_factor)
        check_some_replica_is_active(
            image.cluster, replicas, partition=len(topic.partitions) + step
        )
        assigned.append(replicas)
    return assigned


def _filter(
    _: MetadataImage, request: CreatePartitionsRequest, access: Access
) -> Filtered[CreatePartitionsRequest, CreatePartitionsResponse]:
    """Demand ALTER on each topic."""
    counts = Counter(topic.name for topic in request.topics)
    once = [name for name, count in counts.items() if count == 1]
    allowed = access.allowed_topics(AclOperation.ALTER, once)
    refused = [name for name in once if name not in allowed]

    def complete(response: CreatePartitionsResponse) -> None:
        # These come after the duplicate names, which were refused first, and before all others.
        place = len(counts) - len(once)
        response.results[place:place] = [
            _result(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, None) for name in refused
        ]

    left = CreatePartitionsRequest(
        topics=[topic for topic in request.topics if topic.name not in refused],
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    return Filtered(left, complete)


def _refuse(
    request: CreatePartitionsRequest, error: RequestError, _version: int
) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[_result(topic.name, error.code, error.message) for topic in request.topics]
    )


API: Final = ControllerApi(
    request=CreatePartitionsRequest,
    permission=PER_RESOURCE,
    decide=create_partitions,
    refuse=_refuse,
    filter_by_authorization=_filter,
    timeout_ms=own_timeout_ms,
    mutation_quota=MutationQuotaTerms(strict_since=3, response=CreatePartitionsResponse),
)
