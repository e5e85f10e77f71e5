"""DescribeAcls (29): access control entries, grouped by resource."""

from typing import Final

from kvorum.broker.view_api import BrokerView, ViewApi
from kvorum.metadata.acl_codes import AclOperation, problem_with_codes
from kvorum.metadata.acl_filters import AclFilter, matching_entries
from kvorum.metadata.acls_image import AccessControlEntry
from kvorum.metadata.api import RequestError, refused_by_message
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def describe_acls(
    image: MetadataImage, request: DescribeAclsRequest, view: BrokerView
) -> DescribeAclsResponse:
    """Describe the entries that the filter matches, sorted and without duplicates."""
    if not view.access.is_restricted:
        raise RequestError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    wanted = AclFilter.of(request)
    by_resource: dict[tuple[int, str, int], list[AccessControlEntry]] = {}
    for entry in sorted({entry for _, entry in matching_entries(image.acls, wanted)}):
        resource = (entry.resource_type, entry.resource_name, entry.pattern_type)
        by_resource.setdefault(resource, []).append(entry)
    return DescribeAclsResponse(
        resources=[
            DescribeAclsResponse.DescribeAclsResource(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern_type,
                acls=[_description(entry) for entry in entries],
            )
            for (resource_type, name, pattern_type), entries in by_resource.items()
        ]
    )


def _description(entry: AccessControlEntry) -> DescribeAclsResponse.AclDescription:
    return DescribeAclsResponse.AclDescription(
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )


def _form_problem(request: DescribeAclsRequest) -> str | None:
    """Return what is wrong where a code is UNKNOWN; codes that do not exist match nothing."""
    codes = {request.resource_type_filter, request.pattern_type_filter}
    return problem_with_codes(codes | {request.operation, request.permission_type})


API: Final = ViewApi(
    request=DescribeAclsRequest,
    permission=AclOperation.DESCRIBE,
    answer=describe_acls,
    refuse=refused_by_message(DescribeAclsResponse),
    form_problem=_form_problem,
)
