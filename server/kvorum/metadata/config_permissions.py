"""Which permission looking at, or changing, the configuration of a resource needs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.metadata.access import Access
from kvorum.metadata.acl_codes import CLUSTER_NAME, AclOperation, AclResourceType
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.request_error import RequestError
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
"""What the permission is about for each type of resource, and how its lack is told."""


def config_refusal(
    access: Access, operation: AclOperation, *, resource_type: int, name: str
) -> RequestError | None:
    """Return why `operation` on the configuration of a resource is refused, None where it is not.

    A type that does not exist is not refused here.
    """
    if resource_type not in _NEEDED:
        return None
    kind, code = _NEEDED[resource_type]
    resource = CLUSTER_NAME if kind == AclResourceType.CLUSTER else name
    if access.allows(operation, kind, resource):
        return None
    return RequestError.with_default_message(code)
