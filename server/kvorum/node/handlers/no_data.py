"""What every request for records is answered with, as long as partitions carry none."""

from __future__ import annotations

from typing import Final

from kvorum.metadata.access import Access
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.topics_image import TopicsImage
from kvorum.wire.error_codes import ErrorCode

ERROR: Final = ErrorCode.INVALID_REQUEST
"""Not to be retried; its text blames a request "sent to an incompatible broker", which it was."""
MESSAGE: Final = "This node keeps the metadata of a cluster: its partitions carry no records."


def error_for(
    topics: TopicsImage, *, name: str, topic_id: bytes, operation: AclOperation, access: Access
) -> ErrorCode:
    """Return why records of a topic, named or by its id, cannot be had or added."""
    known = topics.by_id.get(topic_id)
    asked = name or (known.name if known is not None else "")
    if asked and not access.allows_on_topic(operation, asked):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ERROR
