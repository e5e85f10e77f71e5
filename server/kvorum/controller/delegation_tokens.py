"""CreateDelegationToken (38), RenewDelegationToken (39), ExpireDelegationToken (40)."""

from __future__ import annotations

from typing import Final

from kvorum.controller.result import ControllerResult
from kvorum.controller.settings import ControllerContext
from kvorum.metadata.delegation_tokens import is_expired, may_renew
from kvorum.metadata.delegation_tokens_image import DelegationToken
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.principal import USER_TYPE, Principal
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kvorum.wire.messages.delegation_token_record import DelegationTokenRecord
from kvorum.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kvorum.wire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kvorum.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kvorum.wire.uuid_text import random_uuid, uuid_to_text

EXPIRED_TOKENS_PER_RUN_MAX: Final = 1_000
FIRST_VERSION_WITH_REQUESTER: Final = 3
TIMESTAMP_MS_MAX: Final = 2**63 - 1


def owner_of_new_token(request: CreateDelegationTokenRequest, requester: Principal) -> Principal:
    """Return for whom the token is: the requester where nobody is named.

    Raises `RequestError` UNKNOWN_SERVER_ERROR for a name without a type.
    """
    if not request.owner_principal_name:
        return requester
    if request.owner_principal_type is None:
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Principal(request.owner_principal_type, request.owner_principal_name)


def create_delegation_token(
    image: MetadataImage, request: CreateDelegationTokenRequest, context: ControllerContext
) -> ControllerResult[CreateDelegationTokenResponse]:
    """Make a token for its owner; the secret goes into the answer, and nowhere else."""
    requester = context.principal
    owner = owner_of_new_token(request, requester)
    response = CreateDelegationTokenResponse(principal_type=owner.type, principal_name=owner.name)
    if context.api_version >= FIRST_VERSION_WITH_REQUESTER:
        response.token_requester_principal_type = requester.type
        response.token_requester_principal_name = requester.name
    try:
        _check_tokens_are_possible(image, context)
        if any(renewer.principal_type != USER_TYPE for renewer in request.renewers):
            raise RequestError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    except RequestError as error:
        response.error_code = error.code
        return ControllerResult(response)
    token = _new_token(request, context, owner=owner)
    token_id = uuid_to_text(random_uuid(context.random))
    response.issue_timestamp_ms = token.issue_timestamp_ms
    response.expiry_timestamp_ms = token.expiration_timestamp_ms
    response.max_timestamp_ms = token.max_timestamp_ms
    response.token_id = token_id
    response.hmac = context.settings.token_secrets.of(token_id)
    record = _record(token_id, token, expires_at_ms=token.expiration_timestamp_ms)
    return ControllerResult(response, ((record, 0),))


def _new_token(
    request: CreateDelegationTokenRequest, context: ControllerContext, *, owner: Principal
) -> DelegationToken:
    settings = context.settings.token_secrets.settings
    now_ms = context.wall_clock_ms
    lifetime_ms = settings.lifetime_ms_max
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    ends_at_ms = min(now_ms + lifetime_ms, TIMESTAMP_MS_MAX)
    return DelegationToken(
        owner=owner.text,
        requester=context.principal.text,
        renewers=tuple(
            Principal(renewer.principal_type, renewer.principal_name).text
            for renewer in request.renewers
        ),
        issue_timestamp_ms=now_ms,
        max_timestamp_ms=ends_at_ms,
        expiration_timestamp_ms=min(ends_at_ms, now_ms + settings.expiry_ms),
    )


def renew_delegation_token(
    image: MetadataImage, request: RenewDelegationTokenRequest, context: ControllerContext
) -> ControllerResult[RenewDelegationTokenResponse]:
    """Let a token last longer, though never beyond its end."""
    now_ms = context.wall_clock_ms
    try:
        token_id, token = _find(image, request.hmac, context)
        if is_expired(token, now_ms):
            raise RequestError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        _check_may_renew(token, context)
    except RequestError as error:
        return ControllerResult(RenewDelegationTokenResponse(error_code=error.code))
    period_ms = context.settings.token_secrets.settings.expiry_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    expires_at_ms = min(token.max_timestamp_ms, now_ms + period_ms)
    return ControllerResult(
        RenewDelegationTokenResponse(expiry_timestamp_ms=expires_at_ms),
        ((_record(token_id, token, expires_at_ms=expires_at_ms), 0),),
    )


def expire_delegation_token(
    image: MetadataImage, request: ExpireDelegationTokenRequest, context: ControllerContext
) -> ControllerResult[ExpireDelegationTokenResponse]:
    """Let a token end after a while; a negative while removes it at once."""
    now_ms = context.wall_clock_ms
    try:
        token_id, token = _find(image, request.hmac, context)
        _check_may_renew(token, context)
        if request.expiry_time_period_ms < 0:
            return ControllerResult(
                ExpireDelegationTokenResponse(expiry_timestamp_ms=now_ms),
                ((RemoveDelegationTokenRecord(token_id=token_id), 0),),
            )
        if is_expired(token, now_ms):
            raise RequestError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    except RequestError as error:
        return ControllerResult(ExpireDelegationTokenResponse(error_code=error.code))
    expires_at_ms = min(token.max_timestamp_ms, now_ms + request.expiry_time_period_ms)
    return ControllerResult(
        ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_at_ms),
        ((_record(token_id, token, expires_at_ms=expires_at_ms), 0),),
    )


def expire_tokens(image: MetadataImage, context: ControllerContext) -> ControllerResult[bool]:
    """Remove tokens that are of no use any more.

    The answer tells whether the limit of one run was hit: then call again at once.
    """
    expired = [
        token_id
        for token_id, token in image.delegation_tokens.tokens.items()
        if is_expired(token, context.wall_clock_ms)
    ]
    records = tuple(
        (RemoveDelegationTokenRecord(token_id=token_id), 0)
        for token_id in expired[:EXPIRED_TOKENS_PER_RUN_MAX]
    )
    is_full = len(records) == EXPIRED_TOKENS_PER_RUN_MAX
    return ControllerResult(is_full, records, is_atomic=False)


def _check_tokens_are_possible(image: MetadataImage, context: ControllerContext) -> None:
    if not context.settings.token_secrets.is_enabled:
        raise RequestError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    version = image.features.metadata_version
    if version is None or not version.supports_delegation_tokens:
        raise RequestError(ErrorCode.UNSUPPORTED_VERSION)


def _find(
    image: MetadataImage, secret: bytes, context: ControllerContext
) -> tuple[str, DelegationToken]:
    _check_tokens_are_possible(image, context)
    token_id = context.settings.token_secrets.find(image.delegation_tokens, bytes(secret))
    if token_id is None:
        raise RequestError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token_id, image.delegation_tokens.tokens[token_id]


def _check_may_renew(token: DelegationToken, context: ControllerContext) -> None:
    if not may_renew(token, context.principal):
        raise RequestError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _record(token_id: str, token: DelegationToken, *, expires_at_ms: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        expiration_timestamp=expires_at_ms,
        token_id=token_id,
    )
