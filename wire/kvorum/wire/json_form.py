"""Messages as JSON, in the form of Kafka's own generated converters.

Keys are Kafka's field names with a lower-case first letter, in the order of the schema. Uuids are
22 characters of base64, bytes and records standard base64. Tagged fields at their default are
omitted. Unknown tagged fields have no JSON form, as in Kafka.
"""

import base64
import binascii
import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from kvorum.wire.errors import DecodeError, UnsupportedVersionError
from kvorum.wire.primitives import Message, Struct
from kvorum.wire.uuid_text import uuid_from_text, uuid_to_text

# The JSON edge: the input may have any type, the output is for json.dumps.
Json: TypeAlias = Any
M = TypeVar("M", bound=Message)
_INTEGERS = frozenset({"int8", "int16", "uint16", "int32", "uint32", "int64"})


class FieldFacts(NamedTuple):
    """A row of a class's `FIELDS`, in the order the generator writes it."""

    attribute: str
    json_name: str
    kind: str
    versions: tuple[int, int]
    nullable: tuple[int, int]
    tag: int | None
    tagged: tuple[int, int]
    default: Any
    is_ignorable: bool

    def is_in(self, version: int) -> bool:
        """Whether the field exists in a version."""
        return self.versions[0] <= version <= self.versions[1]

    def is_tagged_in(self, version: int) -> bool:
        """Whether the field is in the tagged section of a version."""
        return self.tag is not None and self.tagged[0] <= version <= self.tagged[1]

    def is_nullable_in(self, version: int) -> bool:
        """Whether the field may be null in a version."""
        return self.nullable[0] <= version <= self.nullable[1]


class JsonOptions(NamedTuple):
    """The options of the JSON form.

    Without `is_with_records` a record blob is replaced by its size, under another key.
    """

    is_with_records: bool = True


DEFAULT_OPTIONS = JsonOptions()


def to_json(message: Message, version: int, options: JsonOptions = DEFAULT_OPTIONS) -> Json:
    """Return the message as plain dicts, lists, strings and numbers.

    Raises `UnsupportedVersionError` as encoding would.
    """
    message.version_index(version)
    return _struct_to_json(message, version, options)


def from_json(kind: type[M], value: Json, version: int) -> M:
    """Return the message that `value` describes; raises `DecodeError` naming the field."""
    kind.version_index(version)
    found: M = _struct_from_json(kind, value, version)
    return found


def fields_of(kind: type[Struct]) -> tuple[FieldFacts, ...]:
    """Return the facts about the fields of a generated class; the same tuple at each call."""
    return _fields_of(kind)  # type: ignore[arg-type] # classes can be hashed, their instances not


@cache
def _fields_of(kind: type[Struct]) -> tuple[FieldFacts, ...]:
    return tuple(FieldFacts(*row) for row in kind.FIELDS)


@cache
def _fields_at(kind: type[Struct], version: int) -> tuple[tuple[FieldFacts, bool, bool], ...]:
    """Return the fields; of each, whether a version has it, and whether it is tagged there."""
    return tuple(
        (field, field.is_in(version), field.is_tagged_in(version)) for field in fields_of(kind)
    )


def element_class(kind: type[Struct], type_name: str) -> type[Struct] | None:
    """Return the class of a field's elements, or None for primitives."""
    found = getattr(sys.modules[kind.__module__], type_name.removeprefix("[]"), None)
    return found if isinstance(found, type) and issubclass(found, Struct) else None


# -- to JSON -----------------------------------------------------------------------------------


def _struct_to_json(value: Struct, version: int, options: JsonOptions) -> dict[str, Json]:
    kind = type(value)
    found: dict[str, Json] = {}
    for field, is_in, is_tagged in _fields_at(kind, version):  # type: ignore[arg-type] # see above
        own = getattr(value, field.attribute)
        if not is_in:
            if not field.is_ignorable and not is_default(kind, field, own):
                raise UnsupportedVersionError(
                    f"Attempted to write a non-default {field.json_name} at version {version}"
                )
            continue
        if is_tagged and is_default(kind, field, own):
            continue
        if field.kind == "records" and not options.is_with_records:
            found[f"{field.json_name}SizeInBytes"] = 0 if own is None else len(own)
            continue
        found[field.json_name] = _value_to_json(field.kind, own, version, options)
    return found


def is_default(kind: type[Struct], field: FieldFacts, value: object) -> bool:
    """Return whether a field of the class `kind` has its default value."""
    if field.default != ():
        return bool(value == field.default)
    if field.kind.startswith("[]"):
        return value == []
    inner = element_class(kind, field.kind)
    return inner is not None and value == inner()


def _value_to_json(kind: str, value: Any, version: int, options: JsonOptions) -> Json:
    if value is None:
        return None
    if kind.startswith("[]"):
        return [_value_to_json(kind[2:], element, version, options) for element in value]
    if kind == "uuid":
        return uuid_to_text(value)
    if kind in {"bytes", "records"}:
        return base64.b64encode(value).decode("ascii")
    return _struct_to_json(value, version, options) if isinstance(value, Struct) else value


# -- from JSON ---------------------------------------------------------------------------------


def _struct_from_json(kind: type[Any], value: Json, version: int) -> Any:
    if not isinstance(value, Mapping):
        raise DecodeError(kind.__name__, f"expected a JSON object, got {type(value).__name__}")
    source = cast("Mapping[str, Json]", value)
    found = kind()
    for field in fields_of(kind):
        if not field.is_in(version):
            continue
        if field.json_name not in source:
            if not field.is_tagged_in(version):
                raise DecodeError(
                    kind.__name__,
                    f"unable to locate field '{field.json_name}', which is mandatory in version "
                    f"{version}",
                )
            continue
        setattr(found, field.attribute, _field_from_json(kind, field, source, version))
    return found


def _field_from_json(
    kind: type[Struct], field: FieldFacts, source: Mapping[str, Json], version: int
) -> Any:
    value = source[field.json_name]
    if value is None:
        if not field.is_nullable_in(version) and field.kind != "records":
            raise DecodeError(kind.__name__, f"field '{field.json_name}' may not be null")
        return None
    if not field.kind.startswith("[]"):
        return _element_from_json(kind, field, value, version)
    if not isinstance(value, list):
        raise DecodeError(kind.__name__, f"field '{field.json_name}' is no JSON array")
    elements: list[Json] = value  # pyright: ignore[reportUnknownVariableType] - JSON edge
    return [_element_from_json(kind, field, element, version) for element in elements]


def _element_from_json(kind: type[Struct], field: FieldFacts, value: Json, version: int) -> Any:
    name = field.kind.removeprefix("[]")
    read = _PRIMITIVES.get("integer" if name in _INTEGERS else name)
    if read is None:
        return _struct_from_json(element_class(kind, name) or kind, value, version)
    try:
        return read(value)
    except (TypeError, ValueError, binascii.Error) as error:
        raise DecodeError(
            kind.__name__, f"field '{field.json_name}' is no {name}: {value!r}"
        ) from error


def _integer(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(value)
    return value


def _boolean(value: Json) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value


def _string(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _bytes(value: Json) -> bytes:
    return base64.b64decode(_string(value), validate=True)


_PRIMITIVES: Mapping[str, Callable[[Json], Any]] = MappingProxyType(
    {
        "integer": _integer,
        "bool": _boolean,
        "float64": float,
        "string": _string,
        "uuid": lambda value: uuid_from_text(_string(value)),
        "bytes": _bytes,
        "records": lambda value: memoryview(_bytes(value)),
    }
)
