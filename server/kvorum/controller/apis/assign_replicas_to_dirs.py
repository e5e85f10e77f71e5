"""AssignReplicasToDirs (73): a broker reports the log directories of its replicas (KIP-858)."""

from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult, records_of
from kvorum.controller.broker_changes import PartitionOfTopic, leader_and_isr_changes
from kvorum.controller.broker_epochs import registration_of_epoch
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError, refused_by_code
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from kvorum.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsResponseDirectoryData as DirectoryAnswer,
)
from kvorum.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsResponsePartitionData as PartitionAnswer,
)
from kvorum.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsResponseTopicData as TopicAnswer,
)


def assign_replicas_to_directories(
    image: MetadataImage, request: AssignReplicasToDirsRequest, context: ControllerRequestContext
) -> ControllerResult[AssignReplicasToDirsResponse]:
    """Record the directories of the broker's replicas; replicas in an offline one leave the ISR."""
    if not image.metadata_version.supports_directory_assignment:
        raise RequestError(
            ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet."
        )
    broker = registration_of_epoch(image.cluster, request.broker_id, request.broker_epoch)
    rules = ClusterRules(image, context.settings)
    response = AssignReplicasToDirsResponse()
    records: list[RecordAndVersion] = []
    # Each partition once, even if the request repeats it.
    offline: dict[tuple[bytes, int], PartitionOfTopic] = {}
    for directory in request.directories:
        is_offline = not broker.has_online_directory(directory.id)
        answer = DirectoryAnswer(id=directory.id)
        for wanted in directory.topics:
            topic = image.topics.by_id.get(wanted.topic_id)
            topic_answer = TopicAnswer(topic_id=wanted.topic_id)
            for partition in wanted.partitions:
                index = partition.partition_index
                code = _refusal_code(topic, index, broker.id)
                if topic is not None and code == ErrorCode.NONE:
                    records.extend(_assign(rules, topic, index, (broker.id, directory.id)))
                    if is_offline:
                        offline[topic.id, index] = (topic, index)
                topic_answer.partitions.append(
                    PartitionAnswer(partition_index=index, error_code=code)
                )
            answer.topics.append(topic_answer)
        response.directories.append(answer)
    changes = leader_and_isr_changes(rules, offline.values(), broker_to_remove=broker.id)
    records.extend(records_of(changes))
    return ControllerResult(response, tuple(records), is_atomic=False)


def _refusal_code(topic: TopicImage | None, index: int, broker_id: int) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


def _assign(
    rules: ClusterRules, topic: TopicImage, index: int, place: tuple[int, bytes]
) -> list[RecordAndVersion]:
    change = rules.change(topic, index)
    change.directories[place[0]] = place[1]
    record = change.record()
    return [] if record is None else [record]


API: Final = ControllerApi(
    request=AssignReplicasToDirsRequest,
    permission=AclOperation.CLUSTER_ACTION,
    decide=assign_replicas_to_directories,
    refuse=refused_by_code(AssignReplicasToDirsResponse),
)
