"""Values at the limits of a field, and requests that differ from a good one in one field."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from kvorum.wire.json_form import FieldFacts, element_class, fields_of
from kvorum.wire.primitives import Struct
from kvorum.wire.uuid_text import uuid_to_text

Path: TypeAlias = tuple[str | int, ...]
"""The way to a value: names of fields, and indexes of arrays."""

LONGEST_STRING: Final = 32_767
UNKNOWN_UUID: Final = uuid_to_text(b"\x5a" * 16)
RESERVED: Final = tuple(uuid_to_text(bytes(15) + bytes([last])) for last in (0, 1, 2))
TEXTS: Final = (
    *("", " ", ".", "..", "-1", "0", "a.b", "a_b", "a/b", "é", "\0", "\n"),
    *("x" * 249, "x" * 250, "x" * LONGEST_STRING),
)
FLOATS: Final = (0.0, -0.0, -1.0, 0.5, 1.0, 1e300, float("inf"), float("-inf"), float("nan"))
BITS: Final[Mapping[str, int]] = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
MANY: Final = 300


def limits_of(kind: str) -> tuple[Any, ...]:
    """Return the values of a primitive type that are worth trying."""
    if kind in BITS:
        highest = 2 ** (BITS[kind] - 1) - 1
        return (-highest - 1, -1, 0, 1, highest)
    match kind:
        case "bool":
            return (True, False)
        case "uint16":
            return (0, 1, 65_535)
        case "float64":
            return FLOATS
        case "uuid":
            return (*RESERVED, UNKNOWN_UUID)
        case "string":
            return TEXTS
        case "bytes":
            return tuple(base64.b64encode(data).decode() for data in (b"", b"\0", b"\xff" * 5000))
        case _:
            return ()


def changed_bodies(
    kind: type[Struct], body: Mapping[str, Any], version: int, *, has_others: bool = False
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield where the change is, and `body` with one field of it at a limit.

    Fields of arrays are changed in their first element. If `has_others`, also in one that comes
    after the good one, and there are arrays of very many elements.
    """
    for field in fields_of(kind):
        if not field.is_in(version):
            continue
        name, old = field.json_name, body.get(field.json_name)
        for value in _other_values(kind, field, old, version):
            yield (name,), {**body, name: value}
        if has_others and isinstance(old, list) and old and element_class(kind, field.kind):
            yield (name,), {**body, name: old[:1] * MANY}
        yield from _changed_inside(kind, field, body, version, has_others=has_others)


def value_at(path: Path, body: Any) -> Any:
    for step in path:
        body = body[step]
    return body


def description(path: Path, body: Mapping[str, Any]) -> str:
    return f"{'.'.join(map(str, path))} = {str(value_at(path, body))[:60]}"


def _changed_inside(
    kind: type[Struct],
    field: FieldFacts,
    body: Mapping[str, Any],
    version: int,
    *,
    has_others: bool,
) -> Iterator[tuple[Path, dict[str, Any]]]:
    name, old = field.json_name, body.get(field.json_name)
    inner = element_class(kind, field.kind)
    if inner is None or not old or isinstance(old, str):
        return
    first = old[0] if field.kind.startswith("[]") else old
    for path, changed in changed_bodies(inner, first, version, has_others=has_others):
        if field.kind.startswith("[]"):
            yield (name, 0, *path), {**body, name: [changed, *old[1:]]}
            if has_others and len(path) == 1:
                yield (name, 1, *path), {**body, name: [first, changed]}
        else:
            yield (name, *path), {**body, name: changed}


def _other_values(kind: type[Struct], field: FieldFacts, old: Any, version: int) -> Iterator[Any]:
    if field.is_nullable_in(version) and old is not None:
        yield None
    if not field.kind.startswith("[]"):
        yield from (one for one in limits_of(field.kind) if one != old)
        return
    elements = [] if old is None or isinstance(old, str) else list(old)
    if elements:
        yield []
        yield [*elements, elements[0]]
        yield [elements[0]] * 3
    for one in limits_of(field.kind[2:]):
        yield [*elements[1:], one]
    if elements and element_class(kind, field.kind) is None:
        yield elements[:1] * MANY
