"""RenewDelegationToken (39): sets a later expiry of a token."""

from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult
from kvorum.controller.delegation_tokens import admitting, check_may_renew, find_token, token_record
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.api import PER_RESOURCE, RequestError, refused_by_code
from kvorum.metadata.delegation_tokens import is_expired
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


def renew_delegation_token(
    image: MetadataImage, request: RenewDelegationTokenRequest, context: ControllerRequestContext
) -> ControllerResult[RenewDelegationTokenResponse]:
    """Set a later expiry of a token, at most its maximum lifetime."""
    now_ms = context.wall_clock_ms
    try:
        token_id, token = find_token(image, request.hmac, context)
        if is_expired(token, now_ms):
            raise RequestError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        check_may_renew(token, context)
    except RequestError as error:
        return ControllerResult(RenewDelegationTokenResponse(error_code=error.code))
    period_ms = context.settings.token_secrets.settings.expiry_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    expires_at_ms = min(token.max_timestamp_ms, now_ms + period_ms)
    return ControllerResult(
        RenewDelegationTokenResponse(expiry_timestamp_ms=expires_at_ms),
        ((token_record(token_id, token, expires_at_ms=expires_at_ms), 0),),
    )


API: Final = ControllerApi(
    request=RenewDelegationTokenRequest,
    permission=PER_RESOURCE,
    decide=renew_delegation_token,
    refuse=refused_by_code(RenewDelegationTokenResponse),
    admit=admitting(RenewDelegationTokenResponse),
    is_admitted_by_brokers=True,
)
