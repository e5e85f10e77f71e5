"""Which error codes a response has, and how often (Kafka's AbstractResponse.errorCounts)."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from kvorum.wire.json_form import element_class, fields_of
from kvorum.wire.primitives import Struct

ERROR_CODE: Final = "error_code"


class _Places(NamedTuple):
    """Where the codes of a class of structs are: in itself, and in attributes with structs."""

    is_here: bool
    inside: tuple[str, ...]


def count_errors(value: Struct, counts: dict[int, int]) -> None:
    """Add to `counts` how often each error code is in `value`, 0 for what went well included."""
    places = _places(type(value))  # type: ignore[arg-type] # classes can be hashed
    if places.is_here:
        code: int = getattr(value, ERROR_CODE)
        counts[code] = counts.get(code, 0) + 1
    for attribute in places.inside:
        found: Struct | list[Struct] | None = getattr(value, attribute)
        if isinstance(found, list):
            for one in found:
                count_errors(one, counts)
        elif found is not None:
            count_errors(found, counts)


@cache
def _places(kind: type[Struct]) -> _Places:
    is_here = False
    inside: list[str] = []
    for field in fields_of(kind):
        if field.attribute == ERROR_CODE:
            is_here = True
        element = element_class(kind, field.kind)
        if element is not None and any(_places(element)):  # type: ignore[arg-type] # as above
            inside.append(field.attribute)
    return _Places(is_here, tuple(inside))
