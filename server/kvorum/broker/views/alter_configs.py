"""AlterConfigs and IncrementalAlterConfigs on a broker: its own checks, and forwarding."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from kvorum.broker.view_api import BrokerView
from kvorum.broker.views.config_changes import (
    DELETE,
    SET,
    changed_values,
    check_broker_name,
    check_broker_values,
)
from kvorum.broker.views.config_layers import applied_values
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.config_permissions import config_refusal
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.logger_changes import check_logger_changes
from kvorum.metadata.request_error import RequestError, invalid_request
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

PASSED_ON = (ResourceType.TOPIC, ResourceType.CLIENT_METRICS, ResourceType.GROUP)


class _Resource(Protocol):
    resource_type: int
    resource_name: str


class _Answer(Protocol):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str


Operation: TypeAlias = tuple[str, int, str | None]
"""The name of a key, what is done with it, and a value."""
Request = TypeVar("Request", AlterConfigsRequest, IncrementalAlterConfigsRequest)
Response = TypeVar("Response", AlterConfigsResponse, IncrementalAlterConfigsResponse)


@dataclass(frozen=True, slots=True)
class Screened(Generic[Request]):
    """The broker's own results, by index in the request, and the request to forward.

    A result of None is a success for which nothing has to be forwarded.
    """

    answers: Mapping[int, RequestError | None]
    remaining: Request


def screen(image: MetadataImage, request: Request, view: BrokerView) -> Screened[Request]:
    """Split `request` into the broker's own results and the part to forward.

    AlterConfigs replaces what the image holds, and changes no loggers.
    """
    is_incremental = isinstance(request, IncrementalAlterConfigsRequest)
    stored = image if is_incremental else MetadataImage()
    counts = Counter((one.resource_type, one.resource_name) for one in request.resources)
    answers: dict[int, RequestError | None] = {}
    # Typed Any, as each request has a class of its own for resources.
    remaining: Any = type(request)(validate_only=request.validate_only)
    for index, resource in enumerate(request.resources):
        try:
            if counts[resource.resource_type, resource.resource_name] > 1:
                raise invalid_request("Each resource must appear at most once.")
            operations = [_operation(config) for config in resource.configs]
            _check_keys(operations)
            if is_incremental and resource.resource_type == ResourceType.BROKER_LOGGER:
                _check_may_change_loggers(view)
                check_logger_changes(resource.resource_name, operations, node_id=view.node_id)
                answers[index] = None
            else:
                _check_resource(stored, resource, operations, view)
                remaining.resources.append(resource)
        except RequestError as error:
            answers[index] = error
    return Screened(answers, remaining)


def reassemble(
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
    own_answers: Mapping[int, RequestError | None],
    response: Response,
) -> Response:
    """Return one result per resource of `request`: the broker's own, or the controller's."""
    answers = _answers(request.resources, own_answers, response.responses)
    # Typed Any, as each response has a class of its own for answers.
    responses: Any = [response.AlterConfigsResourceResponse(*one) for one in answers]
    response.responses = responses
    return response


def _operation(
    config: AlterConfigsRequest.AlterableConfig | IncrementalAlterConfigsRequest.AlterableConfig,
) -> Operation:
    if isinstance(config, AlterConfigsRequest.AlterableConfig):
        return config.name, SET, config.value
    return config.name, config.config_operation, config.value


def _check_keys(operations: Sequence[Operation]) -> None:
    if any(count > 1 for count in Counter(name for name, _, _ in operations).values()):
        raise invalid_request("Error due to duplicate config keys")
    missing = [name for name, kind, value in operations if kind != DELETE and value is None]
    if missing:
        raise invalid_request(f"Null value not supported for : {', '.join(missing)}")


def _check_resource(
    image: MetadataImage, resource: _Resource, operations: Sequence[Operation], view: BrokerView
) -> None:
    if resource.resource_type in PASSED_ON:
        return
    if resource.resource_type != ResourceType.BROKER:
        raise invalid_request(f"Unknown resource type {resource.resource_type}")
    check_broker_name(resource.resource_name, view.node_id)
    is_of_one_broker = bool(resource.resource_name)
    stored = image.configs.of(ResourceType.BROKER, resource.resource_name)
    # A value that controllers have let through, and no broker applies, prevents no other change.
    current = applied_values(stored, is_for_all=not is_of_one_broker)
    check_broker_values(changed_values(current, operations), is_of_one_broker=is_of_one_broker)


def _check_may_change_loggers(view: BrokerView) -> None:
    refusal = config_refusal(
        view.access,
        AclOperation.ALTER_CONFIGS,
        resource_type=ResourceType.BROKER_LOGGER,
        name=str(view.node_id),
    )
    if refusal is not None:
        raise RequestError(refusal.code)


def _answers(
    resources: Sequence[_Resource],
    own_answers: Mapping[int, RequestError | None],
    answers: Iterable[_Answer],
) -> Iterable[tuple[int, str | None, int, str]]:
    """Yield for each resource its code and message, with its type and name."""
    by_resource = {(answer.resource_type, answer.resource_name): answer for answer in answers}
    for index, resource in enumerate(resources):
        key = resource.resource_type, resource.resource_name
        answer = by_resource.get(key)
        if index in own_answers:
            refusal = own_answers[index]
            code = ErrorCode.NONE if refusal is None else refusal.code
            yield code, None if refusal is None else refusal.message, *key
        elif answer is not None:
            yield answer.error_code, answer.error_message, *key
        else:
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            yield code, code.default_message, *key
