"""AlterConfigs and IncrementalAlterConfigs on a broker: its own checks, and forwarding.

Only the broker can check its own values; the controller checks everything else.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from kvorum.broker.view_api import BrokerView
from kvorum.broker.views.config_layers import PER_LISTENER_ONLY, ConfigLayers, config_layers
from kvorum.broker.views.reconfiguration import check_reconfiguration
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError, invalid_request
from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    ConfigType,
    InvalidConfigError,
    UpdateMode,
    broker_definition,
    broker_value,
    check_group_bounds,
    convert_to_text,
    default_value,
    java_split,
    parse_value,
)
from kvorum.metadata.config_operation import check_logger_changes, parse_node_id
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.standard_authorizer import config_refusal
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

LISTENER_KEY: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")
SET, DELETE, APPEND, SUBTRACT = range(4)
PASSED_ON = (ResourceType.TOPIC, ResourceType.CLIENT_METRICS, ResourceType.GROUP)


def check_broker_name(name: str, node_id: int) -> None:
    """Raise `RequestError` unless `name` is empty or the id of this node."""
    if not name:
        return
    if parse_node_id(name, f"Node id must be an integer, but it is: {name}") != node_id:
        raise invalid_request(f"Unexpected broker id, expected {node_id}, but received {name}")


def check_broker_values(values: Mapping[str, str], *, is_of_one_broker: bool) -> None:
    """Raise `RequestError` unless a broker could run with `values` as its dynamic configuration."""
    _refuse_any("Cannot update these configs dynamically", filter(_is_read_only, values))
    _refuse_any(
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix",
        PER_LISTENER_ONLY & values.keys(),
    )
    for name, text in values.items():
        listener_key = LISTENER_KEY.match(name)
        definition = BROKER_CONFIGS.get(listener_key[1] if listener_key else name)
        if definition is not None:
            try:
                parse_value(definition, text)
            except InvalidConfigError as error:
                raise invalid_request(error.message) from error
    if not is_of_one_broker:
        _refuse_any(
            "Cannot update these configs at default cluster level, broker id must be specified",
            filter(_is_per_broker, values),
        )


def _check_bounds(layers: ConfigLayers) -> None:
    """Raise `RequestError` where a key of groups would be out of its bounds, new value or not."""
    texts = {**layers.static, **layers.cluster, **layers.node}
    try:
        check_group_bounds(lambda name: broker_value(name, texts))
    except InvalidConfigError as error:
        raise invalid_request(error.message) from error


def changed_values(
    current: Mapping[str, str], operations: Iterable[tuple[str, int, str | None]]
) -> dict[str, str]:
    """Return the broker's values after `operations` (key, operation, value)."""
    values = dict(current)
    for name, operation, value in operations:
        match operation:
            case 0:
                values[name] = value or ""
            case 1:
                values.pop(name, None)
            case 2 | 3:
                values[name] = _edited_list(values, name, operation, value or "")
            case _:
                raise invalid_request(f"Unknown operations type {operation}")
    return values


def _edited_list(values: Mapping[str, str], name: str, operation: int, value: str) -> str:
    definition = BROKER_CONFIGS.get(name)
    if definition is None:
        raise RequestError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
    if definition.type is not ConfigType.LIST:
        verb = "append" if operation == APPEND else "subtract"
        raise RequestError(
            ErrorCode.INVALID_CONFIG, f"Config value {verb} is not allowed for config key: {name}"
        )
    text = values.get(name)
    if text is None:
        text = convert_to_text(default_value(definition)) or ""
    old = java_split(text) if text else []
    edits = java_split(value)
    if operation == APPEND:
        return ",".join([*old, *(edit for edit in edits if edit not in old)])
    for edit in edits:
        if edit in old:
            old.remove(edit)
    return ",".join(old)


def _is_read_only(name: str) -> bool:
    definition = BROKER_CONFIGS.get(name)
    return definition is not None and definition.update_mode is UpdateMode.READ_ONLY


def _is_per_broker(name: str) -> bool:
    definition = broker_definition(name)
    return definition is not None and definition.update_mode is UpdateMode.PER_BROKER


def _refuse_any(problem: str, names: Iterable[str]) -> None:
    found = sorted(names)
    if found:
        raise invalid_request(f"{problem}: [{', '.join(found)}]")


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
                _check_may_change(ResourceType.BROKER_LOGGER, view)
                check_logger_changes(resource.resource_name, operations, node_id=view.node_id)
                answers[index] = None
            else:
                _check_resource(image, resource, operations, view, replaces_all=not is_incremental)
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
    image: MetadataImage,
    resource: _Resource,
    operations: Sequence[Operation],
    view: BrokerView,
    *,
    replaces_all: bool,
) -> None:
    if resource.resource_type in PASSED_ON:
        return
    if resource.resource_type != ResourceType.BROKER:
        raise invalid_request(f"Unknown resource type {resource.resource_type}")
    _check_may_change(ResourceType.BROKER, view)
    check_broker_name(resource.resource_name, view.node_id)
    is_of_one_broker = bool(resource.resource_name)
    # A value that controllers have let through, and no broker applies, prevents no other change.
    layers = config_layers(image.configs, node_id=view.node_id, texts=view.texts)
    current = layers.node if is_of_one_broker else layers.cluster
    changed = changed_values({} if replaces_all else current, operations)
    check_broker_values(changed, is_of_one_broker=is_of_one_broker)
    changes = {"node" if is_of_one_broker else "cluster": changed}
    following = replace(layers, **changes)
    _check_bounds(following)
    check_reconfiguration(layers, following)
    if is_of_one_broker:
        view.check_stores(changed)


def _check_may_change(resource_type: ResourceType, view: BrokerView) -> None:
    """Raise `RequestError` unless the client may change this broker's configuration or loggers.

    The controller would refuse it as well, but after these values have been looked at.
    """
    refusal = config_refusal(
        view.access,
        AclOperation.ALTER_CONFIGS,
        resource_type=resource_type,
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
