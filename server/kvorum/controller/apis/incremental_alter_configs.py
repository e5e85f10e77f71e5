"""IncrementalAlterConfigs (44): changes single keys of resources."""

from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult, Filtered, check_record_count
from kvorum.controller.configs import (
    ConfigOperation,
    clear_elr_records,
    incremental_changes,
    refused_resources,
    resources_left,
    sort_out_resources,
)
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError, invalid_request
from kvorum.metadata.config_operation import Operation, check_logger_changes
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.standard_authorizer import Access
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequestAlterConfigsResource as Resource,
)

OPERATIONS: Final = frozenset(Operation)


def incremental_alter_configs(
    image: MetadataImage, request: IncrementalAlterConfigsRequest, context: ControllerRequestContext
) -> ControllerResult[IncrementalAlterConfigsResponse]:
    """Change each resource on its own: a refused resource does not affect the others.

    An operation that does not exist is the exception: it fails the whole request. Kafka's
    controller answers UNKNOWN_SERVER_ERROR to it and resigns.
    """
    kept = [resource for resource in request.resources if not _is_logger(resource)]
    for wanted in kept:
        for config in wanted.configs:
            if config.config_operation not in OPERATIONS:
                raise invalid_request(f"There is no config operation {config.config_operation}.")
    resources, refused = sort_out_resources(kept)
    response = IncrementalAlterConfigsResponse(
        responses=[_answer(resource, error) for resource, error in refused]
    )
    records: list[RecordAndVersion] = []
    for resource in resources:
        try:
            records.extend(
                incremental_changes(
                    image,
                    (resource.resource_type, resource.resource_name),
                    _operations(resource),
                    context=context,
                )
            )
            response.responses.append(_answer(resource, None))
        except RequestError as error:
            response.responses.append(_answer(resource, error))
    response.responses.extend(
        _logger_answer(resource, context) for resource in request.resources if _is_logger(resource)
    )
    records.extend(clear_elr_records(image, records))
    check_record_count(records)
    return ControllerResult(response, () if request.validate_only else tuple(records))


def _is_logger(resource: Resource) -> bool:
    """Return whether `resource` is the log levels of a node, which are not metadata."""
    return resource.resource_type == ResourceType.BROKER_LOGGER


def _logger_answer(
    resource: Resource, context: ControllerRequestContext
) -> IncrementalAlterConfigsResponse.AlterConfigsResourceResponse:
    operations = [(c.name, c.config_operation, c.value) for c in resource.configs]
    try:
        check_logger_changes(resource.resource_name, operations, node_id=context.settings.node_id)
    except RequestError as error:
        return _answer(resource, error)
    return _answer(resource, None)


def _operations(resource: Resource) -> list[ConfigOperation]:
    """Return one operation per key: the last one of a key applies."""
    operations: dict[str, ConfigOperation] = {}
    for config in resource.configs:
        operations[config.name] = ConfigOperation(
            config.name, Operation(config.config_operation), config.value
        )
    return list(operations.values())


def _answer(
    resource: Resource, error: RequestError | None
) -> IncrementalAlterConfigsResponse.AlterConfigsResourceResponse:
    return IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.message if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _filter(
    _: MetadataImage, request: IncrementalAlterConfigsRequest, access: Access
) -> Filtered[IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse]:
    """Demand the same as AlterConfigs; for log levels of a node, CLUSTER_ACTION on the cluster."""
    refused = refused_resources(request.resources, access)
    loggers = [r for r in request.resources if r.resource_type == ResourceType.BROKER_LOGGER]
    if loggers and not access.allows_on_cluster(AclOperation.CLUSTER_ACTION):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        refused += [(logger, RequestError.with_default_message(code)) for logger in loggers]

    def complete(response: IncrementalAlterConfigsResponse) -> None:
        response.responses.extend(_answer(resource, error) for resource, error in refused)

    left = IncrementalAlterConfigsRequest(
        resources=resources_left(request.resources, refused), validate_only=request.validate_only
    )
    return Filtered(left, complete)


def _refuse(
    request: IncrementalAlterConfigsRequest, error: RequestError, _version: int
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[_answer(resource, error) for resource in request.resources]
    )


API: Final = ControllerApi(
    request=IncrementalAlterConfigsRequest,
    permission=PER_RESOURCE,
    decide=incremental_alter_configs,
    refuse=_refuse,
    filter_by_authorization=_filter,
)
