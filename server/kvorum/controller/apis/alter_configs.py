"""AlterConfigs (33): replaces the whole configuration of resources."""

from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult, Filtered, check_record_count
from kvorum.controller.configs import (
    clear_elr_records,
    refused_resources,
    replacing_changes,
    resources_left,
    sort_out_resources,
)
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.standard_authorizer import Access
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse


def alter_configs(
    image: MetadataImage, request: AlterConfigsRequest, context: ControllerRequestContext
) -> ControllerResult[AlterConfigsResponse]:
    """Replace the configuration of each resource; keys that are not named are removed."""
    resources, refused = sort_out_resources(request.resources)
    response = AlterConfigsResponse(
        responses=[_answer(resource, error) for resource, error in refused]
    )
    records: list[RecordAndVersion] = []
    for resource in resources:
        try:
            records.extend(
                replacing_changes(
                    image,
                    (resource.resource_type, resource.resource_name),
                    {config.name: config.value for config in resource.configs},
                    context=context,
                )
            )
            response.responses.append(_answer(resource, None))
        except RequestError as error:
            response.responses.append(_answer(resource, error))
    records.extend(clear_elr_records(image, records))
    check_record_count(records)
    return ControllerResult(response, () if request.validate_only else tuple(records))


def _answer(
    resource: AlterConfigsRequest.AlterConfigsResource, error: RequestError | None
) -> AlterConfigsResponse.AlterConfigsResourceResponse:
    return AlterConfigsResponse.AlterConfigsResourceResponse(
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.message if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _filter(
    _: MetadataImage, request: AlterConfigsRequest, access: Access
) -> Filtered[AlterConfigsRequest, AlterConfigsResponse]:
    """Demand ALTER_CONFIGS on each resource, or on the cluster for brokers and client metrics."""
    refused = refused_resources(request.resources, access)

    def complete(response: AlterConfigsResponse) -> None:
        response.responses.extend(_answer(resource, error) for resource, error in refused)

    left = AlterConfigsRequest(
        resources=resources_left(request.resources, refused), validate_only=request.validate_only
    )
    return Filtered(left, complete)


def _refuse(
    request: AlterConfigsRequest, error: RequestError, _version: int
) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[_answer(resource, error) for resource in request.resources]
    )


API: Final = ControllerApi(
    request=AlterConfigsRequest,
    permission=PER_RESOURCE,
    decide=alter_configs,
    refuse=_refuse,
    filter_by_authorization=_filter,
)
