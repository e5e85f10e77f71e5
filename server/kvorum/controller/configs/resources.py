"""The resources of a request: those to decide on, and those that are refused beforehand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.request_error import RequestError
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
            refused.append((resource, _unknown_type(resource.resource_type)))
        elif counts[key] == 1:
            accepted.append(resource)
        elif key not in seen:
            refused.append((resource, _duplicate()))
        seen.add(key)
    return accepted, refused


def _unknown_type(resource_type: int) -> RequestError:
    return RequestError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource type {resource_type}.")


def _duplicate() -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, "Duplicate resource.")
