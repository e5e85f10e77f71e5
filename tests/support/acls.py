"""Entries of an authorizer, created over a connection of one's own."""

from typing import Final

from tests.support.raw_client import RawClient

from kvorum.metadata.acl_codes import AclOperation, AclResourceType, PatternType, PermissionType
from kvorum.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse

WITH_AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""Settings of a node on which everybody may do what no entry is about."""


def entry(
    resource_type: AclResourceType,
    name: str,
    operation: AclOperation,
    *,
    principal: str = "User:ANONYMOUS",
    host: str = "*",
    permission: PermissionType = PermissionType.ALLOW,
) -> CreateAclsRequest.AclCreation:
    """Return an entry about one resource."""
    return CreateAclsRequest.AclCreation(
        resource_type=resource_type,
        resource_name=name,
        resource_pattern_type=PatternType.LITERAL,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def add_entries(client: RawClient, *entries: CreateAclsRequest.AclCreation) -> None:
    """Create entries; none of them may be refused."""
    response = client.ask(CreateAclsRequest(creations=list(entries)), CreateAclsResponse, 3)
    assert [result.error_code for result in response.results] == [0] * len(entries)
