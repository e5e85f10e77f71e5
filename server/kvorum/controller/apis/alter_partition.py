"""AlterPartition (56): the leader of a partition proposes a new ISR."""

from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult
from kvorum.controller.broker_epochs import registration_of_epoch
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.partition_change_builder import Election
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import refused_by_code
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import (
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionRegistration,
    merge_partition_change,
)
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kvorum.wire.messages.alter_partition import (
    AlterPartitionRequestPartitionData as PartitionRequest,
)
from kvorum.wire.messages.alter_partition import (
    AlterPartitionResponsePartitionData as PartitionResponse,
)
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord

FIRST_VERSION_WITH_BROKER_EPOCHS = 3
UNKNOWN_BROKER_EPOCH = -1


InSync = list[tuple[int, int]]
"""The id and the epoch of each broker of a proposed ISR."""


def alter_partition(
    image: MetadataImage, request: AlterPartitionRequest, context: ControllerRequestContext
) -> ControllerResult[AlterPartitionResponse]:
    """Change the ISR of each partition on its own, if its leader's proposal is valid."""
    registration_of_epoch(image.cluster, request.broker_id, request.broker_epoch)
    rules = ClusterRules(image, context.settings)
    response = AlterPartitionResponse()
    records: list[RecordAndVersion] = []
    for topic_request in request.topics:
        topic = image.topics.by_id.get(topic_request.topic_id)
        answers = [
            _refusal(wanted, ErrorCode.UNKNOWN_TOPIC_ID)
            if topic is None
            else _alter(
                rules,
                topic,
                wanted,
                broker_id=request.broker_id,
                in_sync=proposed_isr(wanted, context.api_version),
                records=records,
            )
            for wanted in topic_request.partitions
        ]
        response.topics.append(
            AlterPartitionResponse.TopicData(topic_id=topic_request.topic_id, partitions=answers)
        )
    return ControllerResult(response, tuple(records), is_atomic=False)


def proposed_isr(wanted: PartitionRequest, api_version: int) -> InSync:
    """Return the ISR that a leader proposes, with broker epochs if the version has them."""
    if api_version < FIRST_VERSION_WITH_BROKER_EPOCHS:
        return [(broker_id, UNKNOWN_BROKER_EPOCH) for broker_id in wanted.new_isr]
    return [(state.broker_id, state.broker_epoch) for state in wanted.new_isr_with_epochs]


def _alter(
    rules: ClusterRules,
    topic: TopicImage,
    wanted: PartitionRequest,
    *,
    broker_id: int,
    in_sync: InSync,
    records: list[RecordAndVersion],
) -> PartitionResponse:
    partition = topic.partitions.get(wanted.partition_index)
    if partition is None:
        return _refusal(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    code = refusal_code(rules.image.cluster, partition, wanted, broker_id=broker_id, isr=in_sync)
    if code != ErrorCode.NONE:
        return _refusal(wanted, code)
    change = rules.change(topic, wanted.partition_index)
    if rules.is_unclean_election_enabled(topic.name):
        change.election = Election.UNCLEAN
    change.isr = tuple(member for member, _ in in_sync)
    change.recovery_state = wanted.leader_recovery_state
    record = change.record()
    if record is not None:
        records.append(record)
        message = record[0]
        assert isinstance(message, PartitionChangeRecord)
        if message.leader not in (broker_id, NO_LEADER_CHANGE):
            return _refusal(wanted, ErrorCode.NEW_LEADER_ELECTED)
        partition = merge_partition_change(partition, message)
    return PartitionResponse(
        partition_index=wanted.partition_index,
        error_code=ErrorCode.NONE,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _refusal(wanted: PartitionRequest, code: ErrorCode) -> PartitionResponse:
    return PartitionResponse(partition_index=wanted.partition_index, error_code=code)


def refusal_code(
    cluster: ClusterImage,
    partition: PartitionRegistration,
    wanted: PartitionRequest,
    *,
    broker_id: int,
    isr: InSync,
) -> ErrorCode:
    """Return the error that refuses the change, or NONE.

    Epochs above the known ones are answered with NOT_CONTROLLER: a broker that knows newer epochs
    than this controller should look for another controller.
    """
    if (
        wanted.leader_epoch > partition.leader_epoch
        or wanted.partition_epoch > partition.partition_epoch
    ):
        return ErrorCode.NOT_CONTROLLER
    if wanted.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if wanted.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if not _is_possible_isr(partition, wanted, [member for member, _ in isr]):
        return ErrorCode.INVALID_REQUEST
    if not all(_is_eligible(cluster, member, epoch) for member, epoch in isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _is_possible_isr(
    partition: PartitionRegistration, wanted: PartitionRequest, members: list[int]
) -> bool:
    is_set_of_replicas = len(set(members)) == len(members) and set(members) <= set(
        partition.replicas
    )
    if not is_set_of_replicas or partition.leader not in members:
        return False
    if wanted.leader_recovery_state not in (RECOVERED, RECOVERING):
        return False
    if wanted.leader_recovery_state == RECOVERED:
        return True
    return len(members) == 1 and partition.leader_recovery_state == RECOVERING


def _is_eligible(cluster: ClusterImage, broker_id: int, epoch: int) -> bool:
    broker = cluster.brokers.get(broker_id)
    return broker is not None and broker.is_active and epoch in (UNKNOWN_BROKER_EPOCH, broker.epoch)


API: Final = ControllerApi(
    request=AlterPartitionRequest,
    permission=AclOperation.CLUSTER_ACTION,
    decide=alter_partition,
    refuse=refused_by_code(AlterPartitionResponse),
)
