"""DeleteAcls (31): removes entries from the ACLs of the authorizer."""

from typing import Final

from kvorum.controller.acls import NO_AUTHORIZER, admit_with_authorizer
from kvorum.controller.api import MAX_RECORDS_PER_USER_OPERATION, ControllerApi, ControllerResult
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation, problem_with_codes
from kvorum.metadata.acl_filters import AclFilter, matching_entries
from kvorum.metadata.acls_image import AccessControlEntry
from kvorum.metadata.api import RequestError, invalid_request
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from kvorum.wire.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord


def delete_acls(
    image: MetadataImage, request: DeleteAclsRequest, context: ControllerRequestContext
) -> ControllerResult[DeleteAclsResponse]:
    """Delete the entries that match each filter; too many of them fail the whole request.

    Each filter is applied to the state before the request: an entry that matches two filters is in
    both results.
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
                DeleteAclsResponse.DeleteAclsFilterResult(refusal.code, refusal.message)
            )
            continue
        result = DeleteAclsResponse.DeleteAclsFilterResult(ErrorCode.NONE, None)
        for entry_id, entry in matching_entries(image.acls, wanted):
            if len(ids) >= MAX_RECORDS_PER_USER_OPERATION:
                raise invalid_request(
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
        return invalid_request("Unknown patternFilter.")
    if wanted.has_unknown_entry:
        return invalid_request("Unknown entryFilter.")
    return None


def _match(entry: AccessControlEntry) -> DeleteAclsResponse.DeleteAclsMatchingAcl:
    return DeleteAclsResponse.DeleteAclsMatchingAcl(
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


def _form_problem(request: DeleteAclsRequest) -> str | None:
    """Return the problem of a code that is UNKNOWN; codes that do not exist are refused later."""
    codes: set[int] = set()
    for wanted in request.filters:
        codes |= {wanted.resource_type_filter, wanted.pattern_type_filter}
        codes |= {wanted.operation, wanted.permission_type}
    return problem_with_codes(codes)


def _refuse(request: DeleteAclsRequest, error: RequestError, _version: int) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsResponse.DeleteAclsFilterResult(error.code, error.message)
            for _ in request.filters
        ]
    )


API: Final = ControllerApi(
    request=DeleteAclsRequest,
    permission=AclOperation.ALTER,
    decide=delete_acls,
    refuse=_refuse,
    admit=admit_with_authorizer,
    form_problem=_form_problem,
)
