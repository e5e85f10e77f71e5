"""AlterPartitionReassignments (45): starts and cancels reassignments of partitions."""

from collections.abc import Callable
from typing import Final

from kvorum.controller.api import (
    ControllerApi,
    ControllerResult,
    check_record_count,
    own_timeout_ms,
)
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.new_partitions import check_assignment
from kvorum.controller.partition_change_builder import Election
from kvorum.controller.partition_reassignment import plan_reassignment, revert_reassignment
from kvorum.controller.quorum_reassignment.quorum_targets import alter_target_voters
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError, invalid_request
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequestReassignablePartition as ReassignablePartition,
)
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponseReassignablePartitionResponse as PartitionAnswer,
)
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponseReassignableTopicResponse as TopicAnswer,
)


def alter_partition_reassignments(
    image: MetadataImage,
    request: AlterPartitionReassignmentsRequest,
    context: ControllerRequestContext,
) -> ControllerResult[AlterPartitionReassignmentsResponse]:
    """Start, change or cancel the reassignment of each partition on its own.

    The partition of the metadata log is among them: its replicas are the voters of the quorum, and
    a reassignment of it states the target voters (KIP-642).

    Each decision is made from the state before the request, so a partition is changed only once:
    two changes may contradict each other. Kafka writes both, and its controller fails when it
    cannot replay them.
    """
    rules = ClusterRules(image, context.settings)
    records: list[RecordAndVersion] = []
    changed: set[tuple[str, int]] = set()
    topics: list[TopicAnswer] = []
    for topic in request.topics:
        answers: list[PartitionAnswer] = []
        for target in topic.partitions:
            answer = PartitionAnswer(partition_index=target.partition_index, error_message=None)
            try:
                _check_is_first(changed, topic.name, target.partition_index)
                if topic.name == CLUSTER_METADATA_TOPIC:
                    index, replicas = target.partition_index, target.replicas
                    records.extend(alter_target_voters(image, index, replicas, context))
                else:
                    record = _alter(
                        rules,
                        topic.name,
                        target,
                        may_change_factor=request.allow_replication_factor_change,
                    )
                    records.extend([record] if record else [])
                changed.add((topic.name, target.partition_index))
            except RequestError as error:
                answer.error_code, answer.error_message = error.code, error.message
            answers.append(answer)
        topics.append(TopicAnswer(name=topic.name, partitions=answers))
    check_record_count(records)
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        # Kafka answers a request without topics first of all, with the schema's defaults.
        error_message=None if request.topics else "",
        responses=topics,
    )
    return ControllerResult(response, tuple(records))


def _check_is_first(changed: set[tuple[str, int]], topic_name: str, index: int) -> None:
    if (topic_name, index) in changed:
        raise invalid_request(f"Partition {topic_name}:{index} is listed more than once.")


def _alter(
    rules: ClusterRules, topic_name: str, target: ReassignablePartition, *, may_change_factor: bool
) -> RecordAndVersion | None:
    topic = rules.image.topics.by_name(topic_name)
    if topic is None:
        raise RequestError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic_name}."
        )
    partition = topic.partitions.get(target.partition_index)
    if partition is None:
        raise RequestError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition {topic_name}:{target.partition_index}.",
        )
    if target.replicas is None:
        return _cancel(rules, topic, target.partition_index, partition)
    wanted = tuple(target.replicas)
    check_assignment(rules.image.cluster, wanted, replication_factor=None)
    if not may_change_factor:
        _check_factor(partition, wanted)
    plan = plan_reassignment(partition.replicas, wanted)
    change = rules.change(topic, target.partition_index, _who_may_lead(rules, partition))
    change.replicas = plan.replicas
    change.removing = plan.removing or change.removing
    change.adding = plan.adding or change.adding
    return change.record()


def _who_may_lead(rules: ClusterRules, partition: PartitionRegistration) -> Callable[[int], bool]:
    """Return a function that returns whether a replica may lead, and refuses a returning replica.

    A removed replica's broker may still be in the ELR, although it has deleted the replica. As in
    Kafka, the broker can be added again only after it has left the ELR.
    """

    def may_lead(replica: int) -> bool:
        if not rules.image.cluster.is_broker_active(replica):
            return False
        if replica not in partition.replicas:
            raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return True

    return may_lead


def _check_factor(partition: PartitionRegistration, wanted: tuple[int, ...]) -> None:
    settled = {*partition.replicas, *partition.adding_replicas} - {*partition.removing_replicas}
    if len(settled) != len(wanted):
        raise RequestError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(settled)} to {len(wanted)}",
        )


def _cancel(
    rules: ClusterRules, topic: TopicImage, index: int, partition: PartitionRegistration
) -> RecordAndVersion | None:
    if not partition.is_reassigning:
        raise RequestError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    reverted = revert_reassignment(partition)
    is_unclean_enabled = rules.is_unclean_election_enabled(topic.name)
    if reverted.is_unclean and not is_unclean_enabled:
        raise RequestError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {topic.name}:{index} because it would "
            "require an unclean leader election.",
        )
    change = rules.change(topic, index)
    if is_unclean_enabled:
        change.election = Election.UNCLEAN
    change.isr = reverted.isr
    change.replicas = reverted.replicas
    change.removing = change.adding = ()
    return change.record()


def _refuse(
    request: AlterPartitionReassignmentsRequest, error: RequestError, _version: int
) -> AlterPartitionReassignmentsResponse:
    response = AlterPartitionReassignmentsResponse(
        error_code=error.code, error_message=error.message
    )
    for topic in request.topics:
        partitions = [
            PartitionAnswer(partition.partition_index, error.code, error.message)
            for partition in topic.partitions
        ]
        response.responses.append(TopicAnswer(topic.name, partitions))
    return response


API: Final = ControllerApi(
    request=AlterPartitionReassignmentsRequest,
    permission=AclOperation.ALTER,
    decide=alter_partition_reassignments,
    refuse=_refuse,
    timeout_ms=own_timeout_ms,
)
