"""Which resources of a request its client may configure; the others are told to be refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from kvorum.controller.configs.resources import sort_out_resources
from kvorum.controller.narrowing import Narrowed
from kvorum.metadata.access import Access
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.config_permissions import config_refusal
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterConfigsResponseAlterConfigsResourceResponse,
)
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)


class _Resource(Protocol):
    resource_type: int
    resource_name: str


Resource = TypeVar("Resource", bound=_Resource)


def narrow_alter_configs(
    _: MetadataImage, request: AlterConfigsRequest, access: Access
) -> Narrowed[AlterConfigsRequest, AlterConfigsResponse]:
    """ALTER_CONFIGS on the resource, or on the cluster for nodes and metrics of clients."""
    refused = _refused(request.resources, access)

    def complete(response: AlterConfigsResponse) -> None:
        response.responses.extend(
            AlterConfigsResponseAlterConfigsResourceResponse(
                error.code, error.message, resource.resource_type, resource.resource_name
            )
            for resource, error in refused
        )

    left = AlterConfigsRequest(
        resources=_left(request.resources, refused), validate_only=request.validate_only
    )
    return Narrowed(left, complete)


def narrow_incremental_alter_configs(
    _: MetadataImage, request: IncrementalAlterConfigsRequest, access: Access
) -> Narrowed[IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse]:
    """As for AlterConfigs; for the log levels of a node, CLUSTER_ACTION on the cluster."""
    refused = _refused(request.resources, access)
    loggers = [r for r in request.resources if r.resource_type == ResourceType.BROKER_LOGGER]
    if loggers and not access.allows_on_cluster(AclOperation.CLUSTER_ACTION):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        refused += [(logger, RequestError.with_default_message(code)) for logger in loggers]

    def complete(response: IncrementalAlterConfigsResponse) -> None:
        response.responses.extend(
            IncrementalAlterConfigsResponseAlterConfigsResourceResponse(
                error.code, error.message, resource.resource_type, resource.resource_name
            )
            for resource, error in refused
        )

    left = IncrementalAlterConfigsRequest(
        resources=_left(request.resources, refused), validate_only=request.validate_only
    )
    return Narrowed(left, complete)


def _refused(resources: Sequence[Resource], access: Access) -> list[tuple[Resource, RequestError]]:
    """Return what may not be changed, out of what makes sense and is named once."""
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


def _left(
    resources: Iterable[Resource], refused: Iterable[tuple[Resource, RequestError]]
) -> list[Resource]:
    names = {(resource.resource_type, resource.resource_name) for resource, _ in refused}
    return [r for r in resources if (r.resource_type, r.resource_name) not in names]
