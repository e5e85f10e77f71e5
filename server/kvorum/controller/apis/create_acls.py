"""CreateAcls (30): adds entries to the ACLs of the authorizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kvorum.controller.acls import NO_AUTHORIZER, admit_with_authorizer
from kvorum.controller.api import ControllerApi, ControllerResult, check_record_count
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import (
    CLUSTER_NAME,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    problem_with_codes,
)
from kvorum.metadata.acls_image import AccessControlEntry, acl_record
from kvorum.metadata.api import RequestError, invalid_request
from kvorum.metadata.cidr import CidrError, parse_cidr
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from kvorum.wire.uuid_text import random_uuid

if TYPE_CHECKING:
    from random import Random


def create_acls(
    image: MetadataImage, request: CreateAclsRequest, context: ControllerRequestContext
) -> ControllerResult[CreateAclsResponse]:
    """Create each entry on its own; an entry that exists already is a success.

    A code that only filters may have fails the whole request, as in Kafka.
    """
    if not context.access.is_restricted:
        raise NO_AUTHORIZER
    wanted = [_entry(creation) for creation in request.creations]
    for entry in wanted:
        _check_is_no_filter(entry)
    new: dict[AccessControlEntry, None] = {}
    response = CreateAclsResponse()
    for entry in wanted:
        try:
            _check(entry)
            _check_host(entry.host, image.metadata_version)
        except RequestError as error:
            response.results.append(CreateAclsResponse.AclCreationResult(error.code, error.message))
            continue
        response.results.append(CreateAclsResponse.AclCreationResult(ErrorCode.NONE))
        if entry not in image.acls:
            new[entry] = None
    records = tuple((_record(image, entry, context.random), 0) for entry in new)
    check_record_count(records)
    return ControllerResult(response, records)


def _entry(creation: CreateAclsRequest.AclCreation) -> AccessControlEntry:
    return AccessControlEntry(
        resource_type=AclResourceType(creation.resource_type),
        resource_name=creation.resource_name,
        pattern_type=PatternType(creation.resource_pattern_type),
        principal=creation.principal,
        host=creation.host,
        operation=AclOperation(creation.operation),
        permission_type=PermissionType(creation.permission_type),
    )


def _check_is_no_filter(entry: AccessControlEntry) -> None:
    if (
        entry.resource_type == AclResourceType.ANY
        or entry.pattern_type in (PatternType.ANY, PatternType.MATCH)
        or entry.operation == AclOperation.ANY
        or entry.permission_type == PermissionType.ANY
    ):
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _check(entry: AccessControlEntry) -> None:
    """Raise `RequestError` INVALID_REQUEST for an invalid entry."""
    if entry.resource_type == AclResourceType.CLUSTER and entry.resource_name != CLUSTER_NAME:
        raise invalid_request(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not entry.resource_name:
        raise invalid_request("Invalid empty resource name")
    for what, code in (
        ("resourceType", entry.resource_type),
        ("patternType", entry.pattern_type),
        ("operation", entry.operation),
        ("permissionType", entry.permission_type),
    ):
        if not code:
            raise invalid_request(f"Invalid {what} UNKNOWN")
    if ":" not in entry.principal:
        raise invalid_request(
            f"Could not parse principal from `{entry.principal}` (no colon is present separating "
            "the principal type from the principal name)"
        )


def _check_host(host: str, metadata_version: MetadataVersion) -> None:
    if not host:
        raise invalid_request("Host pattern cannot be null or empty")
    if "/" not in host:
        return
    if not metadata_version.supports_cidr_acls:
        raise RequestError(
            ErrorCode.UNSUPPORTED_VERSION,
            "CIDR-based ACL host patterns require metadata version "
            f"{MetadataVersion.V4_4_IV1.text} or higher.",
        )
    try:
        parse_cidr(host)
    except CidrError as error:
        raise invalid_request(f"Invalid CIDR notation '{host}': {error}") from error


def _record(
    image: MetadataImage, entry: AccessControlEntry, random: Random
) -> AccessControlEntryRecord:
    entry_id = random_uuid(random)
    while entry_id in image.acls.entries:
        entry_id = random_uuid(random)
    return acl_record(entry_id, entry)


def _form_problem(request: CreateAclsRequest) -> str | None:
    """Return the problem of a code that is UNKNOWN; codes that do not exist are refused later."""
    codes: set[int] = set()
    for entry in request.creations:
        codes |= {entry.resource_type, entry.resource_pattern_type}
        codes |= {entry.operation, entry.permission_type}
    return problem_with_codes(codes)


def _refuse(request: CreateAclsRequest, error: RequestError, _version: int) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[
            CreateAclsResponse.AclCreationResult(error.code, error.message)
            for _ in request.creations
        ]
    )


API: Final = ControllerApi(
    request=CreateAclsRequest,
    permission=AclOperation.ALTER,
    decide=create_acls,
    refuse=_refuse,
    admit=admit_with_authorizer,
    form_problem=_form_problem,
)
