"""Refusals of requests about access control entries and delegation tokens."""

from __future__ import annotations

from kvorum.metadata.principal import ANONYMOUS
from kvorum.metadata.request_error import RequestError
from kvorum.wire.messages.create_acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    CreateAclsResponseAclCreationResult,
)
from kvorum.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kvorum.wire.messages.delete_acls import (
    DeleteAclsRequest,
    DeleteAclsResponse,
    DeleteAclsResponseDeleteAclsFilterResult,
)
from kvorum.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kvorum.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

FIRST_VERSION_WITH_REQUESTER = 3
NEVER = -1


def create_acls(request: CreateAclsRequest, error: RequestError) -> CreateAclsResponse:
    """Refuse CreateAcls."""
    return CreateAclsResponse(
        results=[
            CreateAclsResponseAclCreationResult(error.code, error.message)
            for _ in request.creations
        ]
    )


def delete_acls(request: DeleteAclsRequest, error: RequestError) -> DeleteAclsResponse:
    """Refuse DeleteAcls."""
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsResponseDeleteAclsFilterResult(error.code, error.message)
            for _ in request.filters
        ]
    )


def create_delegation_token(
    _: CreateDelegationTokenRequest, error: RequestError, *, api_version: int
) -> CreateDelegationTokenResponse:
    """Refuse CreateDelegationToken."""
    response = CreateDelegationTokenResponse(
        error_code=error.code,
        principal_type=ANONYMOUS.type,
        principal_name=ANONYMOUS.name,
        issue_timestamp_ms=NEVER,
        expiry_timestamp_ms=NEVER,
        max_timestamp_ms=NEVER,
    )
    if api_version >= FIRST_VERSION_WITH_REQUESTER:
        response.token_requester_principal_type = ANONYMOUS.type
        response.token_requester_principal_name = ANONYMOUS.name
    return response


def renew_delegation_token(
    _: RenewDelegationTokenRequest, error: RequestError
) -> RenewDelegationTokenResponse:
    """Refuse RenewDelegationToken."""
    return RenewDelegationTokenResponse(error_code=error.code)


def expire_delegation_token(
    _: ExpireDelegationTokenRequest, error: RequestError
) -> ExpireDelegationTokenResponse:
    """Refuse ExpireDelegationToken."""
    return ExpireDelegationTokenResponse(error_code=error.code)
