"""The resources of a request that its client may configure, and the refusals of the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from kvorum.controller.configs.resources import sort_out_resources
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.config_permissions import config_refusal
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.request_error import RequestError
from kvorum.metadata.standard_authorizer import Access


class _Resource(Protocol):
    resource_type: int
    resource_name: str


Resource = TypeVar("Resource", bound=_Resource)


def refused_resources(
    resources: Sequence[Resource], access: Access
) -> list[tuple[Resource, RequestError]]:
    """Return the forbidden resources among those that are valid and named once."""
    accepted, _others = sort_out_resources(resources)
    refused: list[tuple[Resource, RequestError]] = []
    for resource in accepted:
        if resource.resource_type == ResourceType.BROKER_LOGGER:
            continue
        error = config_refusal(
            access,
            AclOperation.ALTER_CONFIGS,
            resource_type=resource.resource_type,
            name=resource.resource_name,
        )
        if error is not None:
            refused.append((resource, error))
    return refused


def resources_left(
    resources: Iterable[Resource], refused: Iterable[tuple[Resource, RequestError]]
) -> list[Resource]:
    """Return the resources that are not refused."""
    names = {(resource.resource_type, resource.resource_name) for resource, _ in refused}
    return [r for r in resources if (r.resource_type, r.resource_name) not in names]
