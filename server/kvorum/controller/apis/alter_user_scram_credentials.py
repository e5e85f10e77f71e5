"""AlterUserScramCredentials (51): sets and deletes SCRAM credentials of users."""

import hashlib
import hmac
from collections import Counter
from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError
from kvorum.metadata.credentials_image import SCRAM_DIGESTS, SCRAM_ITERATIONS_MIN, ScramMechanism
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from kvorum.wire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord

Change = (
    AlterUserScramCredentialsRequest.ScramCredentialDeletion
    | AlterUserScramCredentialsRequest.ScramCredentialUpsertion
)

ITERATIONS_MAX: Final = 16_384


def alter_user_scram_credentials(
    image: MetadataImage,
    request: AlterUserScramCredentialsRequest,
    context: ControllerRequestContext,
) -> ControllerResult[AlterUserScramCredentialsResponse]:
    """Set or delete the credentials of each user; a user may be named once only."""
    del context
    changes: list[Change] = [*request.deletions, *request.upsertions]
    counts = Counter(change.name for change in changes)
    records: list[RecordAndVersion] = []
    results: dict[str, RequestError | None] = {}
    for change in changes:
        try:
            record = _record(image, change, is_first=change.name not in results)
        except RequestError as error:
            results.setdefault(change.name, error)
            continue
        if counts[change.name] == 1:
            records.append((record, 0))
            results[change.name] = None
        else:
            results.setdefault(change.name, _duplicate())
    response = AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(
                user=name,
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.message if error else None,
            )
            for name, error in sorted(results.items(), key=lambda result: result[1] is not None)
        ]
    )
    return ControllerResult(response, tuple(records))


def _record(
    image: MetadataImage, change: Change, *, is_first: bool
) -> RemoveUserScramCredentialRecord | UserScramCredentialRecord:
    """Return the record of one change; raise `RequestError` to refuse it."""
    if not is_first:
        raise _duplicate()
    if not image.metadata_version.supports_scram:
        raise RequestError(
            ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM"
        )
    if not change.name:
        raise RequestError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in SCRAM_DIGESTS:
        raise RequestError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, AlterUserScramCredentialsRequest.ScramCredentialUpsertion):
        return _upsertion(change)
    if (change.mechanism, change.name) not in image.scram.credentials:
        raise RequestError(
            ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
        )
    return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)


def _upsertion(
    change: AlterUserScramCredentialsRequest.ScramCredentialUpsertion,
) -> UserScramCredentialRecord:
    """Return the record with the keys that verify the password; the password is never stored."""
    if change.iterations < SCRAM_ITERATIONS_MIN:
        raise RequestError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > ITERATIONS_MAX:
        raise RequestError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not change.salted_password:
        # Java refuses an empty key, and the client gets an unspecific error.
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
    digest = SCRAM_DIGESTS[ScramMechanism(change.mechanism)]
    client_key = hmac.digest(change.salted_password, b"Client Key", digest)
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=change.salt,
        stored_key=hashlib.new(digest, client_key).digest(),
        server_key=hmac.digest(change.salted_password, b"Server Key", digest),
        iterations=change.iterations,
    )


def _duplicate() -> RequestError:
    return RequestError(
        ErrorCode.DUPLICATE_RESOURCE,
        "A user credential cannot be altered twice in the same request",
    )


def _refuse(
    request: AlterUserScramCredentialsRequest, error: RequestError, _version: int
) -> AlterUserScramCredentialsResponse:
    users = {deletion.name for deletion in request.deletions}
    users |= {upsertion.name for upsertion in request.upsertions}
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(
                user=user, error_code=error.code, error_message=error.message
            )
            for user in sorted(users)
        ]
    )


API: Final = ControllerApi(
    request=AlterUserScramCredentialsRequest,
    permission=AclOperation.ALTER,
    decide=alter_user_scram_credentials,
    refuse=_refuse,
)
