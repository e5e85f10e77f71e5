"""The answer to requests for a broker's own metadata when the whole of one is refused."""

from __future__ import annotations

from kvorum.broker.views.describe_configs import refuse_describe_configs
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kvorum.wire.messages.describe_configs import DescribeConfigsRequest
from kvorum.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from kvorum.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult,
)
from kvorum.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
)
from kvorum.wire.primitives import Message


def refusal_of_view(request: Message, error: RequestError) -> Message | None:
    """Return the response that names `error` for everything `request` asks about.

    None for a request that is not answered out of a broker's own metadata, or whose response has
    one place for an error of the whole.
    """
    if isinstance(request, MetadataRequest):
        return _metadata(request, error)
    if isinstance(request, DescribeTopicPartitionsRequest):
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(name=topic.name, error_code=error.code)
                for topic in request.topics
            ]
        )
    if isinstance(request, DescribeClientQuotasRequest):
        return DescribeClientQuotasResponse(
            error_code=error.code, error_message=_reason(error), entries=None
        )
    if isinstance(request, DescribeUserScramCredentialsRequest):
        return _scram(request, error)
    if isinstance(request, DescribeConfigsRequest):
        return refuse_describe_configs(request, error.code)
    return None


def _reason(error: RequestError) -> str | None:
    """Return the text, None for what is said of a missing permission: not even which it is."""
    return None if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED else error.message


def _scram(
    request: DescribeUserScramCredentialsRequest, error: RequestError
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(
        error_code=error.code,
        error_message=_reason(error),
        results=[
            DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult(
                error_code=error.code, error_message=_reason(error)
            )
            for _ in request.users or ()
        ],
    )


def _metadata(request: MetadataRequest, error: RequestError) -> MetadataResponse:
    return MetadataResponse(
        error_code=error.code,
        topics=[
            # Most versions have no way to say that a name is missing.
            MetadataResponseTopic(
                name=topic.name or "", topic_id=topic.topic_id, error_code=error.code
            )
            for topic in request.topics or ()
        ],
    )
