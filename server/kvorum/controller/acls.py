"""CreateAcls (30) and DeleteAcls (31): the entries that the authorizer decides by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvorum.controller.limits import check_record_count
from kvorum.controller.result import MAX_RECORDS_PER_USER_OPERATION, ControllerResult
from kvorum.controller.settings import ControllerContext
from kvorum.metadata.acl_codes import (
    CLUSTER_NAME,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
)
from kvorum.metadata.acl_filters import AclFilter, matching_entries
from kvorum.metadata.acls_image import AccessControlEntry
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.create_acls import (
    CreateAclsRequest,
    CreateAclsRequestAclCreation,
    CreateAclsResponse,
    CreateAclsResponseAclCreationResult,
)
from kvorum.wire.messages.delete_acls import (
    DeleteAclsRequest,
    DeleteAclsResponse,
    DeleteAclsResponseDeleteAclsFilterResult,
    DeleteAclsResponseDeleteAclsMatchingAcl,
)
from kvorum.wire.messages.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from kvorum.wire.uuid_text import random_uuid

if TYPE_CHECKING:
    from random import Random

NO_AUTHORIZER = RequestError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def create_acls(
    image: MetadataImage, request: CreateAclsRequest, context: ControllerContext
) -> ControllerResult[CreateAclsResponse]:
    """Create each entry on its own; one that is there already is as good as created.

    A code that only filters know fails the whole request, as in Kafka.
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
        except RequestError as error:
            response.results.append(CreateAclsResponseAclCreationResult(error.code, error.message))
            continue
        response.results.append(CreateAclsResponseAclCreationResult(ErrorCode.NONE))
        if entry not in image.acls:
            new[entry] = None
    records = tuple((_record(image, entry, context.random), 0) for entry in new)
    check_record_count(records)
    return ControllerResult(response, records)


def _entry(creation: CreateAclsRequestAclCreation) -> AccessControlEntry:
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
    """Raise `RequestError` INVALID_REQUEST for an entry that makes no sense."""
    if entry.resource_type == AclResourceType.CLUSTER and entry.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not entry.resource_name:
        raise _invalid("Invalid empty resource name")
    for what, code in (
        ("resourceType", entry.resource_type),
        ("patternType", entry.pattern_type),
        ("operation", entry.operation),
        ("permissionType", entry.permission_type),
    ):
        if not code:
            raise _invalid(f"Invalid {what} UNKNOWN")
    if ":" not in entry.principal:
        raise _invalid(
            f"Could not parse principal from `{entry.principal}` (no colon is present separating "
            "the principal type from the principal name)"
        )


def _invalid(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, message)


def _record(
    image: MetadataImage, entry: AccessControlEntry, random: Random
) -> AccessControlEntryRecord:
    entry_id = random_uuid(random)
    while entry_id in image.acls.entries:
        entry_id = random_uuid(random)
    return AccessControlEntryRecord(
        id=entry_id,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )


def delete_acls(
    image: MetadataImage, request: DeleteAclsRequest, context: ControllerContext
) -> ControllerResult[DeleteAclsResponse]:
    """Delete what each filter is about; too much at once fails the whole request.

    Filters do not see each other's work: an entry that two are about is named by both.
    """
    if not context.access.is_restricted:
        raise NO_AUTHORIZER
    ids: dict[bytes, None] = {}
    response = DeleteAclsResponse()
    for fields in request.filters:
        wanted = AclFilter.of(fields)
        refusal = _refusal(wanted)
        if refusal is not None:
            response.filter_results.append(
                DeleteAclsResponseDeleteAclsFilterResult(refusal.code, refusal.message)
            )
            continue
        result = DeleteAclsResponseDeleteAclsFilterResult(ErrorCode.NONE, None)
        for entry_id, entry in matching_entries(image.acls, wanted):
            if len(ids) >= MAX_RECORDS_PER_USER_OPERATION:
                raise _invalid(
                    f"Cannot remove more than {MAX_RECORDS_PER_USER_OPERATION} acls in a single "
                    "delete operation."
                )
            ids[entry_id] = None
            result.matching_acls.append(_match(entry))
        response.filter_results.append(result)
    records = tuple((RemoveAccessControlEntryRecord(id=entry_id), 0) for entry_id in ids)
    return ControllerResult(response, records)


def _refusal(wanted: AclFilter) -> RequestError | None:
    if wanted.has_unknown_pattern:
        return _invalid("Unknown patternFilter.")
    if wanted.has_unknown_entry:
        return _invalid("Unknown entryFilter.")
    return None


def _match(entry: AccessControlEntry) -> DeleteAclsResponseDeleteAclsMatchingAcl:
    return DeleteAclsResponseDeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE,
        error_message=None,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )
