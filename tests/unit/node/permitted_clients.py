"""Requests of a client that may do some things only."""

from typing import Any, Final, cast

from kvorum.metadata.acl_codes import AclOperation, AclResourceType, PatternType, PermissionType
from kvorum.metadata.acls_image import AclsImage, replay_access_control_entry
from kvorum.metadata.standard_authorizer import Access, AuthorizerRules, Principal
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.serving.session import Session
from kvorum.security.security_protocol import SecurityProtocol
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.request_header import RequestHeader
from kvorum.wire.primitives import Message

ALICE: Final = Principal("User", "alice")
HOST: Final = "10.0.0.1"


def allowing(*allowed: tuple[AclOperation, AclResourceType, str]) -> Access:
    acls = AclsImage()
    for number, (operation, kind, name) in enumerate(allowed):
        entry = AccessControlEntryRecord(
            id=bytes([number]) * 16,
            resource_type=kind,
            resource_name=name,
            pattern_type=PatternType.LITERAL,
            principal=ALICE.text,
            host="*",
            operation=operation,
            permission_type=PermissionType.ALLOW,
        )
        acls = replay_access_control_entry(acls, entry)
    return Access(AuthorizerRules(), acls, ALICE, HOST)


def incoming(body: Message, version: int, access: Access) -> IncomingRequest[Any]:
    """Return a request as handlers get it."""
    assert body.API_KEY is not None
    return IncomingRequest[Any](
        header=RequestHeader(body.API_KEY, version, 7, "client"),
        body=body,
        frame=b"",
        progress=cast("Any", None),
        session=Session("PLAINTEXT", SecurityProtocol.PLAINTEXT, HOST, ALICE),
        access=access,
    )
