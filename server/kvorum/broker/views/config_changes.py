"""Checks of configuration changes, by a broker that is about to forward them.

Only the broker can check its own values; the controller checks everything else.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from kvorum.broker.views.config_layers import PER_LISTENER_ONLY
from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    ConfigType,
    InvalidConfigError,
    UpdateMode,
    broker_definition,
    convert_to_text,
    default_value,
    java_split,
    parse_value,
)
from kvorum.metadata.request_error import RequestError, invalid_request
from kvorum.wire.error_codes import ErrorCode

LISTENER_KEY: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")
SET, DELETE, APPEND, SUBTRACT = range(4)


def check_broker_name(name: str, node_id: int) -> None:
    """Raise `RequestError` unless `name` is empty or the id of this node."""
    if not name:
        return
    if not re.fullmatch(r"[+-]?[0-9]+", name, re.ASCII):
        raise invalid_request(f"Node id must be an integer, but it is: {name}")
    if int(name) != node_id:
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
