"""DescribeLogDirs (35): the log directories of this broker, and the space on their volumes."""

import os
from pathlib import Path
from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import refused_by_code
from kvorum.node.broker.cordoned_log_dirs import cordoned_log_dirs
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kvorum.wire.primitives import Message

INVALID_OFFSET_LAG: Final = -1


async def answer(
    request: IncomingRequest[DescribeLogDirsRequest], broker: BrokerServices
) -> Message:
    """Describe each directory, and the logs in it that are asked for."""
    directories = dict.fromkeys(broker.config.log_directories)
    cordoned = cordoned_log_dirs(broker.config, broker.loader.published)
    logs = {directory.path: directory for directory in broker.replicas.log_directories}
    results: list[DescribeLogDirsResponse.DescribeLogDirsResult] = []
    for directory in directories:
        path = Path(directory)
        if path not in logs:
            results.append(_offline(path))
            continue
        described = _describe(path, is_cordoned=directory in cordoned)
        if described.error_code == ErrorCode.NONE:
            described.topics = _topics(logs[path], request.body.topics, broker.replicas)
        results.append(described)
    return DescribeLogDirsResponse(results=results)


def _topics(
    directory: LogDirectory,
    asked: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None,
    replicas: ReplicaManager,
) -> list[DescribeLogDirsResponse.DescribeLogDirsTopic]:
    """Return the logs of a directory by topic: all, or those of the partitions asked for."""
    wanted = (
        None
        if asked is None
        else {TopicPartition(one.topic, index) for one in asked for index in one.partitions}
    )
    topics: dict[str, DescribeLogDirsResponse.DescribeLogDirsTopic] = {}
    for logs in (directory.logs, directory.future_logs):
        is_future = logs is directory.future_logs
        for topic_partition, log in tuple(logs.items()):
            if wanted is not None and topic_partition not in wanted:
                continue
            name = topic_partition.topic
            topic = topics.setdefault(name, DescribeLogDirsResponse.DescribeLogDirsTopic(name))
            topic.partitions.append(
                DescribeLogDirsResponse.DescribeLogDirsPartition(
                    partition_index=topic_partition.partition,
                    partition_size=log.local_log.size_bytes,
                    offset_lag=_offset_lag(
                        replicas.log_of(topic_partition), log, is_future=is_future
                    ),
                    is_future_key=is_future,
                )
            )
    return list(topics.values())


def _offset_lag(current: UnifiedLog | None, log: UnifiedLog, *, is_future: bool) -> int:
    """Return the lag of a log; a future one lags behind the current one, if that is there."""
    if current is None:
        return INVALID_OFFSET_LAG
    if is_future:
        return current.log_end_offset - log.log_end_offset
    return max(current.high_watermark - log.log_end_offset, 0)


def _describe(
    directory: Path, *, is_cordoned: bool
) -> DescribeLogDirsResponse.DescribeLogDirsResult:
    path = directory.absolute()
    try:
        volume = os.statvfs(path)
    except OSError:
        return _offline(directory)
    return DescribeLogDirsResponse.DescribeLogDirsResult(
        log_dir=str(path),
        total_bytes=volume.f_blocks * volume.f_frsize,
        usable_bytes=volume.f_bavail * volume.f_frsize,
        is_cordoned=is_cordoned,
    )


def _offline(directory: Path) -> DescribeLogDirsResponse.DescribeLogDirsResult:
    return DescribeLogDirsResponse.DescribeLogDirsResult(
        error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(directory.absolute())
    )


API: Final = BrokerApi(
    request=DescribeLogDirsRequest,
    permission=AclOperation.DESCRIBE,
    answer=answer,
    refuse=refused_by_code(DescribeLogDirsResponse),
)
