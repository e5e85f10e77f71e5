"""DescribeUserScramCredentials (50): the mechanisms of users, without any secret."""

from collections import Counter
from operator import itemgetter
from typing import Final

from kvorum.broker.view_api import BrokerView, ViewApi
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError
from kvorum.metadata.credentials_image import ScramImage
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)


def describe_user_scram_credentials(
    image: MetadataImage, request: DescribeUserScramCredentialsRequest, _view: BrokerView
) -> DescribeUserScramCredentialsResponse:
    """Describe the given users, or all users if the request has none.

    Kafka's controllers list this request but fail it (UNKNOWN_SERVER_ERROR).
    """
    if request.users:
        counts = Counter(user.name for user in request.users)
    else:
        counts = Counter({user: 1 for _, user in sorted(image.scram.credentials)})
    return DescribeUserScramCredentialsResponse(
        results=[_describe(image.scram, user, count) for user, count in counts.items()]
    )


def _describe(
    image: ScramImage, user: str, count: int
) -> DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult:
    result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult(user=user)
    if count > 1:
        result.error_code = ErrorCode.DUPLICATE_RESOURCE
        result.error_message = (
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        )
        return result
    result.credential_infos = [
        DescribeUserScramCredentialsResponse.CredentialInfo(
            mechanism=mechanism, iterations=credential.iterations
        )
        for (mechanism, name), credential in sorted(image.credentials.items(), key=itemgetter(0))
        if name == user
    ]
    if not result.credential_infos:
        result.error_code = ErrorCode.RESOURCE_NOT_FOUND
        result.error_message = f"Attempt to describe a user credential that does not exist: {user}"
    return result


def _refuse(
    request: DescribeUserScramCredentialsRequest, error: RequestError, _version: int
) -> DescribeUserScramCredentialsResponse:
    """Refuse the request, and each user without a name.

    A missing permission has no text, not even which one it is.
    """
    is_not_allowed = error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    message = None if is_not_allowed else error.message
    return DescribeUserScramCredentialsResponse(
        error_code=error.code,
        error_message=message,
        results=[
            DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult(
                error_code=error.code, error_message=message
            )
            for _ in request.users or ()
        ],
    )


API: Final = ViewApi(
    request=DescribeUserScramCredentialsRequest,
    permission=AclOperation.DESCRIBE,
    answer=describe_user_scram_credentials,
    refuse=_refuse,
)
