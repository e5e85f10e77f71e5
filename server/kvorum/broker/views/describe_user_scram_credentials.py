"""DescribeUserScramCredentials (50): which mechanisms users have, never what proves them."""

from __future__ import annotations

from collections import Counter

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.scram_image import ScramImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponseCredentialInfo,
    DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult,
)


def describe_user_scram_credentials(
    image: MetadataImage, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Describe the users that are named, all users where none is."""
    if request.users:
        counts = Counter(user.name for user in request.users)
    else:
        counts = Counter({user: 1 for _, user in sorted(image.scram.credentials)})
    return DescribeUserScramCredentialsResponse(
        results=[_describe(image.scram, user, count) for user, count in counts.items()]
    )


def _describe(
    image: ScramImage, user: str, count: int
) -> DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult:
    result = DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult(
        user=user, error_message=None
    )
    if count > 1:
        result.error_code = ErrorCode.DUPLICATE_RESOURCE
        result.error_message = (
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        )
        return result
    result.credential_infos = [
        DescribeUserScramCredentialsResponseCredentialInfo(
            mechanism=mechanism, iterations=credential.iterations
        )
        for (mechanism, name), credential in sorted(image.credentials.items(), key=_mechanism)
        if name == user
    ]
    if not result.credential_infos:
        result.error_code = ErrorCode.RESOURCE_NOT_FOUND
        result.error_message = f"Attempt to describe a user credential that does not exist: {user}"
    return result


def _mechanism(item: tuple[tuple[int, str], object]) -> tuple[int, str]:
    return item[0]
