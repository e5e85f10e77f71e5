"""DescribeConfigs (32): effective configurations of resources, and the sources of values."""

import logging
from typing import Final

from kvorum.broker.view_api import BrokerView, ViewApi
from kvorum.broker.views.config_entries import (
    ConfigEntry,
    broker_entries,
    client_metrics_entries,
    cluster_entries,
    group_entries,
    topic_entries,
)
from kvorum.broker.views.config_layers import config_layers
from kvorum.broker.views.metadata_topic import is_served
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError, invalid_request
from kvorum.metadata.config_definitions import InvalidConfigError
from kvorum.metadata.config_operation import parse_node_id
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.standard_authorizer import config_refusal
from kvorum.metadata.topic_names import check_topic_name
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

_log = logging.getLogger(__name__)
KNOWN_TYPES = frozenset(ResourceType) - {ResourceType.UNKNOWN}


def describe_configs(
    image: MetadataImage, request: DescribeConfigsRequest, view: BrokerView
) -> DescribeConfigsResponse:
    """Describe each resource on its own; brokers and loggers only of this node.

    A type that does not exist makes the whole request fail.
    """
    if any(resource.resource_type not in KNOWN_TYPES for resource in request.resources):
        return _refuse(request, RequestError(ErrorCode.INVALID_REQUEST), view.api_version)
    described: list[DescribeConfigsResponse.DescribeConfigsResult] = []
    refused: list[DescribeConfigsResponse.DescribeConfigsResult] = []
    for resource in request.resources:
        error = config_refusal(
            view.access,
            AclOperation.DESCRIBE_CONFIGS,
            resource_type=resource.resource_type,
            name=resource.resource_name,
        )
        if error is None:
            described.append(_describe(image, request, resource, view))
        else:
            refused.append(_refusal(resource, error.code))
    return DescribeConfigsResponse(results=described + refused)


def _refuse(
    request: DescribeConfigsRequest, error: RequestError, _version: int
) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[_refusal(resource, error.code) for resource in request.resources]
    )


def _refusal(
    resource: DescribeConfigsRequest.DescribeConfigsResource, code: ErrorCode
) -> DescribeConfigsResponse.DescribeConfigsResult:
    return DescribeConfigsResponse.DescribeConfigsResult(
        error_code=code,
        error_message=code.default_message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _describe(
    image: MetadataImage,
    request: DescribeConfigsRequest,
    resource: DescribeConfigsRequest.DescribeConfigsResource,
    view: BrokerView,
) -> DescribeConfigsResponse.DescribeConfigsResult:
    result = DescribeConfigsResponse.DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        entries = _entries(image, resource, view)
    except RequestError as error:
        result.error_code = error.code
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            result.error_message = error.message
        return result
    except InvalidConfigError as error:
        # Kafka has no error code for invalid effective values, and sends no message either.
        _log.warning("%s cannot be described: %s", resource.resource_name, error.message)
        result.error_code, result.error_message = ErrorCode.UNKNOWN_SERVER_ERROR, None
        return result
    wanted = resource.configuration_keys
    result.configs = [
        _answer(entry, request) for entry in entries if not wanted or entry.name in wanted
    ]
    return result


def _check_topic(name: str, image: MetadataImage, view: BrokerView) -> None:
    check_topic_name(name)
    if not is_served(name, view) and name not in image.topics.ids:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _entries(
    image: MetadataImage, resource: DescribeConfigsRequest.DescribeConfigsResource, view: BrokerView
) -> list[ConfigEntry]:
    name = resource.resource_name
    layers = config_layers(image.configs, node_id=view.node_id, texts=view.texts)
    own = image.configs.of(resource.resource_type, name)
    match resource.resource_type:
        case ResourceType.TOPIC:
            _check_topic(name, image, view)
            # The log of the metadata is configured at each node.
            return [] if is_served(name, view) else topic_entries(own, layers)
        case ResourceType.BROKER:
            if not name:
                return cluster_entries(layers)
            _check_is_this_node(name, view, or_empty=" or empty string,")
            return broker_entries(layers)
        case ResourceType.BROKER_LOGGER:
            if not name:
                raise invalid_request("Broker id must not be empty")
            _check_is_this_node(name, view, or_empty="")
            # No level of a logger can be changed while a node runs.
            return []
        case ResourceType.CLIENT_METRICS:
            if not name:
                raise invalid_request("Client metrics subscription name must not be empty")
            return client_metrics_entries(own)
        case _:
            if not name:
                raise invalid_request("Group name must not be empty")
            return group_entries(own, layers)


def _check_is_this_node(name: str, view: BrokerView, *, or_empty: str) -> None:
    asked_id = parse_node_id(name, f"Broker id must be an integer, but it is: {name}")
    if asked_id != view.node_id:
        raise invalid_request(
            f"Unexpected broker id, expected {view.node_id}{or_empty} but received {name}"
        )


def _answer(
    entry: ConfigEntry, request: DescribeConfigsRequest
) -> DescribeConfigsResponse.DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsResponse.DescribeConfigsSynonym(
            name=synonym.name,
            value=None if entry.is_sensitive else synonym.value,
            source=synonym.source,
        )
        for synonym in entry.synonyms
    ]
    documentation = entry.definition.documentation if entry.definition else None
    return DescribeConfigsResponse.DescribeConfigsResourceResult(
        name=entry.name,
        value=None if entry.is_sensitive else entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=synonyms if request.include_synonyms else [],
        config_type=entry.type,
        documentation=documentation if request.include_documentation else None,
    )


API: Final = ViewApi(
    request=DescribeConfigsRequest, permission=PER_RESOURCE, answer=describe_configs, refuse=_refuse
)
