"""Which error codes a response has, and how often (Kafka's AbstractResponse.errorCounts)."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Final, NamedTuple

from kvorum.wire.json_form import element_class, fields_of
from kvorum.wire.primitives import Message, Struct

ERROR_CODE: Final = "error_code"


class _Places(NamedTuple):
    """Where the codes of a class of structs are: in itself, and in attributes with structs."""

    is_here: bool
    inside: tuple[str, ...]


def error_counts(response: Message) -> Counter[int]:
    """Return how often each error code is in `response`, 0 for what went well included."""
    counts: Counter[int] = Counter()
    _count(response, counts)
    return counts


def _count(value: Struct, counts: Counter[int]) -> None:
    places = _places(type(value))  # type: ignore[arg-type] # classes can be hashed
    if places.is_here:
        counts[getattr(value, ERROR_CODE)] += 1
    for attribute in places.inside:
        found: Struct | list[Struct] | None = getattr(value, attribute)
        for one in found if isinstance(found, list) else (found,):
            if one is not None:
                _count(one, counts)


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
