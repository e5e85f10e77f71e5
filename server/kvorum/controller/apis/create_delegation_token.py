"""CreateDelegationToken (38): makes a token with which a client authenticates as its owner."""

from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult, Requester
from kvorum.controller.delegation_tokens import (
    NEVER,
    admission_code,
    check_tokens_are_possible,
    token_record,
)
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.metadata.credentials_image import DelegationToken
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.standard_authorizer import ANONYMOUS, USER_TYPE, Principal
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kvorum.wire.uuid_text import random_uuid, uuid_to_text

FIRST_VERSION_WITH_REQUESTER: Final = 3
TIMESTAMP_MS_MAX: Final = 2**63 - 1


def owner_of_new_token(request: CreateDelegationTokenRequest, requester: Principal) -> Principal:
    """Return the owner of the token: the requester unless the request names one.

    Raises `RequestError` UNKNOWN_SERVER_ERROR for a name without a type.
    """
    if not request.owner_principal_name:
        return requester
    if request.owner_principal_type is None:
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Principal(request.owner_principal_type, request.owner_principal_name)


def create_delegation_token(
    image: MetadataImage, request: CreateDelegationTokenRequest, context: ControllerRequestContext
) -> ControllerResult[CreateDelegationTokenResponse]:
    """Make a token for its owner; its secret is contained in the response only."""
    requester = context.principal
    owner = owner_of_new_token(request, requester)
    response = CreateDelegationTokenResponse(principal_type=owner.type, principal_name=owner.name)
    if context.api_version >= FIRST_VERSION_WITH_REQUESTER:
        response.token_requester_principal_type = requester.type
        response.token_requester_principal_name = requester.name
    try:
        check_tokens_are_possible(image, context)
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
    record = token_record(token_id, token, expires_at_ms=token.expiration_timestamp_ms)
    return ControllerResult(response, ((record, 0),))


def _new_token(
    request: CreateDelegationTokenRequest, context: ControllerRequestContext, *, owner: Principal
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


def admit(
    request: CreateDelegationTokenRequest, requester: Requester
) -> CreateDelegationTokenResponse | None:
    """Return the refusal of a client that may not make a token for this owner, or None."""
    code = admission_code(requester, owner=owner_of_new_token(request, requester.principal))
    return refuse_creation(request, requester, code) if code else None


def refuse_creation(
    request: CreateDelegationTokenRequest, requester: Requester, code: ErrorCode
) -> CreateDelegationTokenResponse:
    """Return the response without a token that names owner and requester."""
    owner = owner_of_new_token(request, requester.principal)
    return _without_token(
        code, owner=owner, requester=requester.principal, api_version=requester.api_version
    )


def _refuse(
    _: CreateDelegationTokenRequest, error: RequestError, api_version: int
) -> CreateDelegationTokenResponse:
    """Refuse CreateDelegationToken; as in Kafka, owner and requester are empty."""
    return _without_token(error.code, owner=ANONYMOUS, requester=ANONYMOUS, api_version=api_version)


def _without_token(
    code: ErrorCode, *, owner: Principal, requester: Principal, api_version: int
) -> CreateDelegationTokenResponse:
    response = CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp_ms=NEVER,
        expiry_timestamp_ms=NEVER,
        max_timestamp_ms=NEVER,
    )
    if api_version >= FIRST_VERSION_WITH_REQUESTER:
        response.token_requester_principal_type = requester.type
        response.token_requester_principal_name = requester.name
    return response


API: Final = ControllerApi(
    request=CreateDelegationTokenRequest,
    permission=PER_RESOURCE,
    decide=create_delegation_token,
    refuse=_refuse,
    admit=admit,
)
