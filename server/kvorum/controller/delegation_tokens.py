"""The code that the requests about delegation tokens share, and the expiry of tokens."""

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from kvorum.controller.api import ControllerResult, Requester
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.api import RequestError
from kvorum.metadata.credentials_image import DelegationToken
from kvorum.metadata.delegation_tokens import is_expired, may_renew
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.standard_authorizer import Principal
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delegation_token_record import DelegationTokenRecord
from kvorum.wire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kvorum.wire.primitives import Message

_Refusal_co = TypeVar("_Refusal_co", bound=Message, covariant=True)
EXPIRED_TOKENS_PER_RUN_MAX: Final = 1_000
NEVER: Final = -1
"""The value of a time in a response that refuses."""


def expire_tokens(
    image: MetadataImage, context: ControllerRequestContext
) -> ControllerResult[bool]:
    """Remove expired tokens.

    The response is True where the limit of one run was reached: the caller calls again at once.
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


def check_tokens_are_possible(image: MetadataImage, context: ControllerRequestContext) -> None:
    """Raise `RequestError` unless configuration and metadata.version allow tokens."""
    if not context.settings.token_secrets.is_enabled:
        raise RequestError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    version = image.features.metadata_version
    if version is None or not version.supports_delegation_tokens:
        raise RequestError(ErrorCode.UNSUPPORTED_VERSION)


def find_token(
    image: MetadataImage, secret: bytes, context: ControllerRequestContext
) -> tuple[str, DelegationToken]:
    """Return the id and the token of a secret; raise `RequestError` without one."""
    check_tokens_are_possible(image, context)
    token_id = context.settings.token_secrets.find(image.delegation_tokens, bytes(secret))
    if token_id is None:
        raise RequestError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token_id, image.delegation_tokens.tokens[token_id]


def check_may_renew(token: DelegationToken, context: ControllerRequestContext) -> None:
    """Raise `RequestError` unless the client is the owner or a renewer of a token."""
    if not may_renew(token, context.principal):
        raise RequestError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def token_record(
    token_id: str, token: DelegationToken, *, expires_at_ms: int
) -> DelegationTokenRecord:
    """Return the record of a token that expires at `expires_at_ms`."""
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        expiration_timestamp=expires_at_ms,
        token_id=token_id,
    )


class _NewRefusal(Protocol[_Refusal_co]):
    def __call__(self, *, error_code: int, expiry_timestamp_ms: int) -> _Refusal_co: ...


def admitting(
    response: _NewRefusal[_Refusal_co],
) -> Callable[[Message, Requester], _Refusal_co | None]:
    """Return the `admit` of an API that changes the expiry of a client's own tokens."""

    def admit(_: Message, requester: Requester) -> _Refusal_co | None:
        code = admission_code(requester, owner=requester.principal)
        return response(error_code=code, expiry_timestamp_ms=NEVER) if code else None

    return admit


def admission_code(requester: Requester, *, owner: Principal) -> ErrorCode:
    """Return the error for a client that may not ask about tokens of `owner`, or NONE.

    The client must have authenticated by other means than a token.
    """
    if not requester.may_ask_about_tokens:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if not owner.is_same_user(requester.principal) and not requester.access.allows(
        AclOperation.CREATE_TOKENS, AclResourceType.USER, owner.text
    ):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    return ErrorCode.NONE
