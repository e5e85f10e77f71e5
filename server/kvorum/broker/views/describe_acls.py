"""DescribeAcls (29): access control entries, each resource with all that is about it."""

from __future__ import annotations

from kvorum.metadata.acl_filters import AclFilter, matching_entries
from kvorum.metadata.acls_image import AccessControlEntry
from kvorum.metadata.image import MetadataImage
from kvorum.wire.messages.describe_acls import (
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeAclsResponseAclDescription,
    DescribeAclsResponseDescribeAclsResource,
)


def describe_acls(image: MetadataImage, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Describe the entries that the filter is about, in order; each kind of entry once."""
    wanted = AclFilter.of(request)
    by_resource: dict[tuple[int, str, int], list[AccessControlEntry]] = {}
    for entry in sorted({entry for _, entry in matching_entries(image.acls, wanted)}):
        resource = (entry.resource_type, entry.resource_name, entry.pattern_type)
        by_resource.setdefault(resource, []).append(entry)
    return DescribeAclsResponse(
        resources=[
            DescribeAclsResponseDescribeAclsResource(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern_type,
                acls=[_description(entry) for entry in entries],
            )
            for (resource_type, name, pattern_type), entries in by_resource.items()
        ],
    )


def _description(entry: AccessControlEntry) -> DescribeAclsResponseAclDescription:
    return DescribeAclsResponseAclDescription(
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )
