"""Requests out of partial JSON: what is missing is at its default."""

import base64
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from tests.interop.differential.script import Body

from kvorum.wire.json_form import FieldFacts, element_class, fields_of
from kvorum.wire.primitives import Message, Struct
from kvorum.wire.uuid_text import uuid_from_text

S = TypeVar("S", bound=Struct)
M = TypeVar("M", bound=Message)


def message_of(kind: type[M], body: Body, version: int) -> M:
    """Return the message with the fields of `body` that `version` can carry."""
    return _struct_of(kind, body, version)


def _struct_of(kind: type[S], body: Body, version: int) -> S:
    made = kind()
    by_name = {field.json_name: field for field in fields_of(kind)}
    for name, value in body.items():
        field = by_name[name]
        if field.is_in(version):
            setattr(made, field.attribute, _value(kind, field, value, version))
    return made


def _value(kind: type[Struct], field: FieldFacts, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.kind.startswith("[]"):
        elements = cast("list[Any]", value)
        return [_element(kind, field.kind[2:], element, version) for element in elements]
    return _element(kind, field.kind, value, version)


def _element(kind: type[Struct], name: str, value: Any, version: int) -> Any:
    inner = element_class(kind, name)
    if inner is not None and isinstance(value, Mapping):
        return _struct_of(inner, cast("Body", value), version)
    if name == "uuid":
        return uuid_from_text(value)
    if name in {"bytes", "records"}:
        return base64.b64decode(value)
    return value
