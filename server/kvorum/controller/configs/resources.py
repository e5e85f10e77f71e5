"""The resources of a request: which are decided on, and which the client may configure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.config_permissions import config_refusal
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.request_error import RequestError, invalid_request
from kvorum.metadata.standard_authorizer import Access
from kvorum.wire.error_codes import ErrorCode

KNOWN_TYPES: Final = frozenset(ResourceType) - {ResourceType.UNKNOWN}


class _Resource(Protocol):
    resource_type: int
    resource_name: str


Resource = TypeVar("Resource", bound=_Resource)


def sort_out_resources(
    resources: Iterable[Resource],
) -> tuple[list[Resource], list[tuple[Resource, RequestError]]]:
    """Return the resources to change, and the refused ones with the reason.

    Unknown types and duplicate resources are refused; a duplicate resource gets one refusal,
    however often it is named.
    """
    named = list(resources)
    counts = Counter((resource.resource_type, resource.resource_name) for resource in named)
    accepted: list[Resource] = []
    refused: list[tuple[Resource, RequestError]] = []
    seen: set[tuple[int, str]] = set()
    for resource in named:
        key = (resource.resource_type, resource.resource_name)
        if resource.resource_type not in KNOWN_TYPES:
            text = f"Unknown resource type {resource.resource_type}."
            refused.append((resource, RequestError(ErrorCode.UNSUPPORTED_VERSION, text)))
        elif counts[key] == 1:
            accepted.append(resource)
        elif key not in seen:
            refused.append((resource, invalid_request("Duplicate resource.")))
        seen.add(key)
    return accepted, refused


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
