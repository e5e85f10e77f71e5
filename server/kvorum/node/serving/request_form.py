"""What a request must be like beyond its schema, or it counts as one that cannot be read."""

from __future__ import annotations

from kvorum.node.errors import CloseConnectionError
from kvorum.wire.messages.create_acls import CreateAclsRequest
from kvorum.wire.messages.delete_acls import DeleteAclsRequest
from kvorum.wire.messages.describe_acls import DescribeAclsRequest
from kvorum.wire.primitives import Message

UNKNOWN = 0


def check_form(request: Message) -> None:
    """Raise CloseConnectionError for access control entries or filters with the code UNKNOWN.

    Codes that nobody knows are another matter: they are refused by whoever answers.
    """
    codes: set[int] = set()
    if isinstance(request, CreateAclsRequest):
        for entry in request.creations:
            codes |= {entry.resource_type, entry.resource_pattern_type}
            codes |= {entry.operation, entry.permission_type}
    elif isinstance(request, DeleteAclsRequest):
        for wanted in request.filters:
            codes |= {wanted.resource_type_filter, wanted.pattern_type_filter}
            codes |= {wanted.operation, wanted.permission_type}
    elif isinstance(request, DescribeAclsRequest):
        codes |= {request.resource_type_filter, request.pattern_type_filter}
        codes |= {request.operation, request.permission_type}
    if UNKNOWN in codes:
        raise CloseConnectionError(f"{request.NAME} with an element that is UNKNOWN")
