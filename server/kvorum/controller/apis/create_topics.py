"""CreateTopics (19): creates topics with their partitions and configurations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kvorum.controller.api import (
    ControllerApi,
    ControllerResult,
    Filtered,
    MutationQuotaTerms,
    check_record_count,
    own_timeout_ms,
)
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.configs import ConfigOperation, clear_elr_records, incremental_changes
from kvorum.controller.new_partitions import (
    CollidingNames,
    Placement,
    assigned_partitions,
    check_total,
    new_partition,
    new_partition_record,
)
from kvorum.controller.policies import CreateTopicRequest, ask_policy
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.metadata.config_operation import Operation
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.effective_configs import broker_layers, effective_topic_configs
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.standard_authorizer import Access
from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC, check_topic_name
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.create_topics import CreateTopicsRequestCreatableTopic as CreatableTopic
from kvorum.wire.messages.create_topics import (
    CreateTopicsResponseCreatableTopicResult as CreatableTopicResult,
)
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.uuid_text import random_uuid

NOT_TOLD: Final = -1
"""The value of numbers of a topic that the client has no permission to see."""


@dataclass(frozen=True, slots=True)
class _Common:
    """The state that all topics of a request share."""

    image: MetadataImage
    context: ControllerRequestContext
    rules: ClusterRules
    placement: Placement
    configs: _EffectiveConfigs


def create_topics(
    image: MetadataImage, request: CreateTopicsRequest, context: ControllerRequestContext
) -> ControllerResult[CreateTopicsResponse]:
    """Create each topic on its own: a refused topic does not affect the others.

    Results are in the order of the request, followed by those of duplicate names.
    """
    counts = Counter(topic.name for topic in request.topics)
    wanted = [
        topic
        for topic in request.topics
        if counts[topic.name] == 1 and topic.name != CLUSTER_METADATA_TOPIC
    ]
    check_total(
        (_partition_count(topic, context.settings.partitions_default) for topic in wanted),
        "Excessively large number of partitions per request.",
    )
    names = CollidingNames(image.topics)
    common = _Common(
        image=image,
        context=context,
        rules=ClusterRules(image, context.settings),
        placement=Placement(image, context),
        configs=_EffectiveConfigs(image, context),
    )
    records: list[RecordAndVersion] = []
    results: list[CreatableTopicResult] = []
    for topic in wanted:
        try:
            _check_name(image, topic.name, names)
            topic_records, result = _create_topic(topic, common)
        except RequestError as error:
            results.append(_refusal(topic.name, error.code, error.message))
            continue
        records.extend(topic_records)
        check_record_count(records)
        results.append(result)
    results.extend(_refused_beforehand(counts))
    return ControllerResult(
        CreateTopicsResponse(topics=results), () if request.validate_only else tuple(records)
    )


def _partition_count(topic: CreatableTopic, partitions_default: int) -> int:
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions == -1:
        return partitions_default
    return max(topic.num_partitions, 0)


def _refused_beforehand(counts: Counter[str]) -> Iterable[CreatableTopicResult]:
    for name, count in counts.items():
        if count > 1:
            yield _refusal(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if counts[CLUSTER_METADATA_TOPIC] == 1:
        yield _refusal(
            CLUSTER_METADATA_TOPIC,
            ErrorCode.INVALID_REQUEST,
            f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited.",
        )


def _refusal(name: str, code: ErrorCode, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


def _check_name(image: MetadataImage, name: str, names: CollidingNames) -> None:
    if name in image.topics.ids:
        raise RequestError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    colliding = names.existing(name)
    if colliding is not None:
        raise RequestError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {colliding}",
        )
    check_topic_name(name)


def _create_topic(
    topic: CreatableTopic, common: _Common
) -> tuple[list[RecordAndVersion], CreatableTopicResult]:
    image, context = common.image, common.context
    config_records = _config_records(image, topic, context)
    partitions = _partitions(topic, common)
    _ask_policy(topic, partitions, context)
    context.record_mutations(len(partitions))
    topic_id = random_uuid(context.random)
    records: list[RecordAndVersion] = [(TopicRecord(name=topic.name, topic_id=topic_id), 0)]
    records.extend(config_records)
    records.extend(
        new_partition_record(
            image, new_partition(common.rules, replicas), topic_id=topic_id, index=index
        )
        for index, replicas in enumerate(partitions)
    )
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0]),
        configs=common.configs.of(topic),
    )
    return records, result


def _ask_policy(
    topic: CreatableTopic, partitions: Sequence[Sequence[int]], context: ControllerRequestContext
) -> None:
    """Raise `RequestError` where the operator's policy refuses the topic."""
    policy = context.settings.create_topic_policy
    if policy is None:
        return
    configs = {config.name: config.value or "" for config in topic.configs}
    if topic.assignments:
        wanted = CreateTopicRequest(
            topic=topic.name, replicas_assignments=dict(enumerate(partitions)), configs=configs
        )
    else:
        wanted = CreateTopicRequest(
            topic=topic.name,
            num_partitions=len(partitions),
            replication_factor=len(partitions[0]),
            configs=configs,
        )
    ask_policy(lambda: policy.validate(wanted))


def _config_records(
    image: MetadataImage, topic: CreatableTopic, context: ControllerRequestContext
) -> list[RecordAndVersion]:
    missing = [config.name for config in topic.configs if config.value is None]
    if missing:
        raise RequestError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(missing)}",
        )
    values = {config.name: config.value for config in topic.configs}
    if not values:
        return []
    records = incremental_changes(
        image,
        (ResourceType.TOPIC, topic.name),
        [ConfigOperation(name, Operation.SET, value) for name, value in values.items()],
        context=context,
        is_new_resource=True,
    )
    return records + clear_elr_records(image, records)


def _partitions(topic: CreatableTopic, common: _Common) -> list[list[int]]:
    """Return the replicas of each partition."""
    if topic.assignments:
        return assigned_partitions(common.image, topic)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise RequestError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise RequestError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    settings = common.context.settings
    replication_factor = (
        settings.replication_factor_default
        if topic.replication_factor == -1
        else topic.replication_factor
    )
    try:
        return common.placement.place(
            partition_count=(
                settings.partitions_default if topic.num_partitions == -1 else topic.num_partitions
            ),
            replication_factor=replication_factor,
        )
    except RequestError as error:
        if error.code != ErrorCode.INVALID_REPLICATION_FACTOR:
            raise
        raise RequestError(
            error.code,
            f"Unable to replicate the partition {replication_factor} time(s): {error.message}",
        ) from error


class _EffectiveConfigs:
    """The configurations in the response: for topics without their own, computed only once."""

    def __init__(self, image: MetadataImage, context: ControllerRequestContext) -> None:
        settings = context.settings
        self._layers = broker_layers(
            image.configs, node_id=settings.node_id, static=settings.static_configs
        )
        self._of_unset: list[CreateTopicsResponse.CreatableTopicConfigs] | None = None

    def of(self, topic: CreatableTopic) -> list[CreateTopicsResponse.CreatableTopicConfigs]:
        """Return every key of `topic` with its effective value."""
        if topic.configs:
            return self._computed({config.name: config.value or "" for config in topic.configs})
        if self._of_unset is None:
            self._of_unset = self._computed({})
        return self._of_unset

    def _computed(self, own: Mapping[str, str]) -> list[CreateTopicsResponse.CreatableTopicConfigs]:
        return [
            CreateTopicsResponse.CreatableTopicConfigs(
                name=config.name,
                value=None if config.definition.is_sensitive else config.value,
                read_only=False,
                config_source=config.source,
                is_sensitive=config.definition.is_sensitive,
            )
            for config in effective_topic_configs(own, self._layers)
        ]


def _filter(
    _: MetadataImage, request: CreateTopicsRequest, access: Access
) -> Filtered[CreateTopicsRequest, CreateTopicsResponse]:
    """Demand CREATE on cluster or topic; hide configurations without DESCRIBE_CONFIGS."""
    counts = Counter(topic.name for topic in request.topics)
    asked = [n for n, count in counts.items() if count == 1 and n != CLUSTER_METADATA_TOPIC]
    creatable = frozenset(asked)
    if not access.allows_on_cluster(AclOperation.CREATE, logs_denied=False):
        creatable = access.allowed_topics(AclOperation.CREATE, asked)
    describable = access.allowed_topics(AclOperation.DESCRIBE_CONFIGS, asked, logs_denied=False)
    refused = [name for name in asked if name not in creatable]

    def complete(response: CreateTopicsResponse) -> None:
        for result in response.topics:
            if result.error_code == ErrorCode.NONE and result.name not in describable:
                result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                result.num_partitions = NOT_TOLD
                result.replication_factor = NOT_TOLD
                result.configs = []
        response.topics.extend(
            _refusal(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
            for name in refused
        )

    left = CreateTopicsRequest(
        topics=[topic for topic in request.topics if topic.name not in refused],
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    return Filtered(left, complete)


def _refuse(
    request: CreateTopicsRequest, error: RequestError, _version: int
) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[_refusal(topic.name, error.code, error.message) for topic in request.topics]
    )


API: Final = ControllerApi(
    request=CreateTopicsRequest,
    permission=PER_RESOURCE,
    decide=create_topics,
    refuse=_refuse,
    filter_by_authorization=_filter,
    timeout_ms=own_timeout_ms,
    mutation_quota=MutationQuotaTerms(strict_since=6, response=CreateTopicsResponse),
)
