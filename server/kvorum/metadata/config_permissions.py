"""Permissions that describing or changing the configuration of a resource needs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.metadata.acl_codes import CLUSTER_NAME, AclOperation, AclResourceType
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.request_error import RequestError
from kvorum.metadata.standard_authorizer import Access
from kvorum.wire.error_codes import ErrorCode

_OF_CLUSTER: Final = (AclResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
_NEEDED: Final[Mapping[int, tuple[AclResourceType, ErrorCode]]] = MappingProxyType(
    {
        ResourceType.TOPIC: (AclResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ResourceType.GROUP: (AclResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ResourceType.BROKER: _OF_CLUSTER,
        ResourceType.BROKER_LOGGER: _OF_CLUSTER,
        ResourceType.CLIENT_METRICS: _OF_CLUSTER,
    }
)
"""By type of resource: the type that the permission is checked on, and the code of a refusal."""


def config_refusal(
    access: Access, operation: AclOperation, *, resource_type: int, name: str
) -> RequestError | None:
    """Return the refusal of `operation` on a resource's configuration, None where it is allowed.

    A type that does not exist is not refused here.
    """
    if resource_type not in _NEEDED:
        return None
    kind, code = _NEEDED[resource_type]
    resource = CLUSTER_NAME if kind == AclResourceType.CLUSTER else name
    if access.allows(operation, kind, resource):
        return None
    return RequestError.with_default_message(code)
