"""Messages out of the plain data of `requests`, and answers as plain data to compare."""

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from tests.interop.protocol.requests import Fields

from kvorum.wire.json_form import Json, element_class, fields_of, to_json
from kvorum.wire.primitives import Message, Struct

S = TypeVar("S", bound=Struct)
_ADDRESS = re.compile(r"127\.0\.0\.1(/<unresolved>)?:\d+")
_PATH = re.compile(r"/[^ ,]*/[^ ,]*")
_UUID = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])")
# Offsets, times and ports are each node's own; documentation is ours by design.
_OWN = frozenset({"port", "finalizedFeaturesEpoch", "documentation", "highWatermark"})
_OWN_TIMES = frozenset({"logEndOffset", "lastFetchTimestamp", "lastCaughtUpTimestamp"})


def build(kind: type[S], values: Fields) -> S:
    """Return a message or struct with these fields set, the rest at their defaults."""
    made = kind()
    by_name = {field.attribute: field for field in fields_of(kind)}
    for name, value in values.items():
        inner = element_class(kind, by_name[name].kind)
        setattr(made, name, value if inner is None else _nested(inner, value))
    return made


def _nested(kind: type[Struct], value: Any) -> Any:
    if isinstance(value, list):
        return [build(kind, each) for each in cast("list[Fields]", value)]
    return value if value is None else build(kind, value)


def comparable(message: Message, version: int) -> Json:
    """Return an answer without what two nodes cannot have in common, lists in a fixed order."""
    return _canonical(to_json(message, version))


def _canonical(value: Json) -> Json:
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Json]", value)
        return {
            name: None if name in _OWN | _OWN_TIMES else _canonical(each)
            for name, each in fields.items()
        }
    if isinstance(value, list):
        elements = [_canonical(each) for each in cast("list[Fields]", value)]
        return sorted(elements, key=lambda each: json.dumps(each, sort_keys=True))
    if isinstance(value, str):
        return _UUID.sub("UUID", _PATH.sub("PATH", _ADDRESS.sub(r"ADDRESS\1", value)))
    return value
