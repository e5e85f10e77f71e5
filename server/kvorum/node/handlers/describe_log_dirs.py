"""DescribeLogDirs (35): the log directories of this broker, and the space on their volumes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.refusal import refused_by_code
from kvorum.node.handlers.kinds import BrokerApi
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResponseDescribeLogDirsResult,
)
from kvorum.wire.primitives import Message


async def answer(_request: IncomingRequest, broker: BrokerServices) -> Message:
    """Describe each directory; none has replicas, because partitions contain no records."""
    directories = dict.fromkeys(broker.config.log_directories)
    cordoned = set(broker.config.broker.cordoned_log_directories)
    return DescribeLogDirsResponse(
        results=[
            _describe(Path(directory), is_cordoned=bool(cordoned & {directory, "*"}))
            for directory in directories
        ]
    )


def _describe(
    directory: Path, *, is_cordoned: bool
) -> DescribeLogDirsResponseDescribeLogDirsResult:
    path = directory.absolute()
    try:
        volume = os.statvfs(path)
    except OSError:
        return DescribeLogDirsResponseDescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(path)
        )
    return DescribeLogDirsResponseDescribeLogDirsResult(
        log_dir=str(path),
        total_bytes=volume.f_blocks * volume.f_frsize,
        usable_bytes=volume.f_bavail * volume.f_frsize,
        is_cordoned=is_cordoned,
    )


API: Final = BrokerApi(
    key=ApiKey.DESCRIBE_LOG_DIRS,
    request=DescribeLogDirsRequest,
    permission=AclOperation.DESCRIBE,
    answer=answer,
    refuse=refused_by_code(DescribeLogDirsResponse),
)
