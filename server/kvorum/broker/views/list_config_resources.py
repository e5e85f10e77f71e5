"""ListConfigResources (74): the resources that have, or can have, configurations."""

from typing import Final

from kvorum.broker.view_api import BrokerView, ViewApi
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import refused_by_code
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

ALL_TYPES: Final = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)


def list_config_resources(
    image: MetadataImage, request: ListConfigResourcesRequest, view: BrokerView
) -> ListConfigResourcesResponse:
    """List the resources of the requested types; version 0 has client metrics only."""
    known = (ResourceType.CLIENT_METRICS,) if view.api_version == 0 else ALL_TYPES
    wanted = set(request.resource_types or known)
    if not wanted <= set(known):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ListConfigResourcesResponse.ConfigResource(
                resource_name=name, resource_type=resource_type
            )
            for resource_type in known
            if resource_type in wanted
            for name in _names(image, resource_type, view)
        ]
    )


def _names(image: MetadataImage, resource_type: ResourceType, view: BrokerView) -> list[str]:
    if resource_type is ResourceType.TOPIC:
        return sorted(image.topics.ids)
    if resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [
            str(broker.id)
            for broker in image.cluster.sorted_brokers()
            if broker.endpoint(view.listener)
        ]
    return sorted(name for kind, name in image.configs.resources if kind == resource_type)


API: Final = ViewApi(
    request=ListConfigResourcesRequest,
    permission=AclOperation.DESCRIBE_CONFIGS,
    answer=list_config_resources,
    refuse=refused_by_code(ListConfigResourcesResponse),
)
