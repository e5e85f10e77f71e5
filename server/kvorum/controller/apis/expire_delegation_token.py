"""ExpireDelegationToken (40): sets an earlier expiry of a token."""

from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult
from kvorum.controller.delegation_tokens import admitting, check_may_renew, find_token, token_record
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.api import PER_RESOURCE, RequestError, refused_by_code
from kvorum.metadata.delegation_tokens import is_expired
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kvorum.wire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord


def expire_delegation_token(
    image: MetadataImage, request: ExpireDelegationTokenRequest, context: ControllerRequestContext
) -> ControllerResult[ExpireDelegationTokenResponse]:
    """Set the expiry of a token; a negative period removes the token at once."""
    now_ms = context.wall_clock_ms
    try:
        token_id, token = find_token(image, request.hmac, context)
        check_may_renew(token, context)
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
        ((token_record(token_id, token, expires_at_ms=expires_at_ms), 0),),
    )


API: Final = ControllerApi(
    request=ExpireDelegationTokenRequest,
    permission=PER_RESOURCE,
    decide=expire_delegation_token,
    refuse=refused_by_code(ExpireDelegationTokenResponse),
    admit=admitting(ExpireDelegationTokenResponse),
    is_admitted_by_brokers=True,
)
