"""DescribeDelegationToken (41): tokens with their secrets, for authorized principals."""

from typing import Final

from kvorum.broker.view_api import BrokerView, ViewApi
from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.api import PER_RESOURCE, refused_by_code
from kvorum.metadata.credentials_image import DelegationToken
from kvorum.metadata.delegation_tokens import TokenSecrets, is_involved
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.standard_authorizer import Principal
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

FIRST_VERSION_WITH_REQUESTER = 3


def describe_delegation_token(
    image: MetadataImage, request: DescribeDelegationTokenRequest, view: BrokerView
) -> DescribeDelegationTokenResponse:
    """Describe the tokens of the given owners, or of all owners if the request has none.

    A token is shown to its owner, requester and renewers, and to a principal with permission to
    describe the token or the tokens of its owner. Kafka's controllers list
    this request but fail it (UNKNOWN_SERVER_ERROR).
    """
    if not view.may_ask_about_tokens:
        code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return DescribeDelegationTokenResponse(error_code=code)
    secrets = TokenSecrets(view.token_settings)
    if not secrets.is_enabled:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = [Principal(owner.principal_type, owner.principal_name) for owner in request.owners]
    tokens = image.delegation_tokens.tokens
    return DescribeDelegationTokenResponse(
        tokens=[
            _described(token_id, tokens[token_id], view, secrets)
            for token_id in sorted(tokens)
            if _is_asked_for(tokens[token_id], owners)
            and _may_describe(token_id, tokens[token_id], view)
        ]
    )


def _is_asked_for(token: DelegationToken, owners: list[Principal] | None) -> bool:
    return owners is None or any(is_involved(token, owner) for owner in owners)


def _may_describe(token_id: str, token: DelegationToken, view: BrokerView) -> bool:
    return (
        is_involved(token, view.access.principal)
        or view.access.allows(AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, token_id)
        or view.access.allows(AclOperation.DESCRIBE_TOKENS, AclResourceType.USER, token.owner)
    )


def _described(
    token_id: str, token: DelegationToken, view: BrokerView, secrets: TokenSecrets
) -> DescribeDelegationTokenResponse.DescribedDelegationToken:
    owner = Principal.from_text(token.owner)
    described = DescribeDelegationTokenResponse.DescribedDelegationToken(
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp=token.issue_timestamp_ms,
        expiry_timestamp=token.expiration_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        token_id=token_id,
        hmac=secrets.of(token_id),
        renewers=[
            DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer(
                renewer.type, renewer.name
            )
            for renewer in map(Principal.from_text, token.renewers)
        ],
    )
    if view.api_version >= FIRST_VERSION_WITH_REQUESTER:
        requester = Principal.from_text(token.requester)
        described.token_requester_principal_type = requester.type
        described.token_requester_principal_name = requester.name
    return described


API: Final = ViewApi(
    request=DescribeDelegationTokenRequest,
    permission=PER_RESOURCE,
    answer=describe_delegation_token,
    refuse=refused_by_code(DescribeDelegationTokenResponse),
)
