"""Refusals of requests about topics."""

from __future__ import annotations

from kvorum.metadata.request_error import RequestError
from kvorum.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsResponseCreatePartitionsTopicResult,
)
from kvorum.wire.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsResponseCreatableTopicResult,
)
from kvorum.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicsResponseDeletableTopicResult,
)
from kvorum.wire.uuid_text import ZERO_UUID


def create_topics(request: CreateTopicsRequest, error: RequestError) -> CreateTopicsResponse:
    """Refuse CreateTopics."""
    return CreateTopicsResponse(
        topics=[
            CreateTopicsResponseCreatableTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message
            )
            for topic in request.topics
        ]
    )


def delete_topics(request: DeleteTopicsRequest, error: RequestError) -> DeleteTopicsResponse:
    """Refuse DeleteTopics."""
    named = [(topic.name, topic.topic_id) for topic in request.topics]
    named += [(name, ZERO_UUID) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeleteTopicsResponseDeletableTopicResult(
                name=name, topic_id=topic_id, error_code=error.code
            )
            for name, topic_id in named
        ]
    )


def create_partitions(
    request: CreatePartitionsRequest, error: RequestError
) -> CreatePartitionsResponse:
    """Refuse CreatePartitions."""
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsResponseCreatePartitionsTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message
            )
            for topic in request.topics
        ]
    )
