"""AlterReplicaLogDirs (34): replicas move between the log directories of this broker (KIP-113)."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.shield import shield
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[AlterReplicaLogDirsRequest], broker: BrokerServices
) -> Message:
    """Begin each move; a replica that is asked for twice goes to the directory named last."""
    directories = {
        TopicPartition(topic.name, index): directory.path
        for directory in request.body.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    codes = await shield(broker.runtime, broker.replicas.alter_replica_log_dirs(directories))
    results: dict[str, AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = {}
    for (name, index), code in codes.items():
        result = results.setdefault(
            name, AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult(name)
        )
        result.partitions.append(
            AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult(index, code)
        )
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def _refuse(
    body: AlterReplicaLogDirsRequest, error: RequestError, _version: int
) -> AlterReplicaLogDirsResponse:
    """Return the refusal: the code for each partition, as often as it is asked for."""
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult(
                topic.name,
                [
                    AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult(index, error.code)
                    for index in topic.partitions
                ],
            )
            for directory in body.dirs
            for topic in directory.topics
        ]
    )


API: Final = BrokerApi(
    request=AlterReplicaLogDirsRequest, permission=AclOperation.ALTER, answer=answer, refuse=_refuse
)
