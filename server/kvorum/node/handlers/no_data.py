"""The error of every request for records, as long as partitions contain none."""

from __future__ import annotations

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.standard_authorizer import Access
from kvorum.metadata.topics_image import TopicsImage
from kvorum.wire.error_codes import ErrorCode

ERROR: Final = ErrorCode.INVALID_REQUEST
"""Clients do not retry it; its default text mentions "an incompatible broker", which is true."""
MESSAGE: Final = "This node keeps the metadata of a cluster: its partitions carry no records."


def error_for(
    topics: TopicsImage, *, name: str, topic_id: bytes, operation: AclOperation, access: Access
) -> ErrorCode:
    """Return the error of reads and writes of a topic that is given by name or id."""
    known = topics.by_id.get(topic_id)
    asked = name or (known.name if known is not None else "")
    if asked and not access.allows_on_topic(operation, asked):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ERROR
