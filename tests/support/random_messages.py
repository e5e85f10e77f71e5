"""Random messages that a version can carry, made from the field tables of the generated classes."""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from random import Random
from typing import Any, TypeVar

from kvorum.wire.json_form import FieldFacts, element_class, fields_of
from kvorum.wire.primitives import Message, Struct

S = TypeVar("S", bound=Struct)
FIRST_UNKNOWN_TAG = 1000
ALPHABETS = ("abcdefghijklmnopqrstuvwxyz0123456789-_.", "a\u00e9\u00df\u4e2d\u20ac\U0001f600\x00 ")


def random_message(kind: type[S], version: int, random: Random) -> S:
    """Make a message with every field of the version drawn, unknown tags now and then."""
    return _random_struct(kind, version, random, depth=0, flexible_from=_flexible_from(kind))


def _flexible_from(kind: type[Struct]) -> int:
    return kind.FLEXIBLE_FROM if issubclass(kind, Message) else 0


def _random_struct(
    kind: type[S], version: int, random: Random, *, depth: int, flexible_from: int
) -> S:
    made = kind()
    for field, inner in fields_with_classes(kind.__module__, kind.__name__):
        if not field.is_in(version) or (field.is_tagged_in(version) and random.random() < 0.3):
            continue

        def draw(name: str, inner: type[Struct] | None = inner) -> Any:
            if inner is None:
                return RANDOM[name](random)
            return _random_struct(
                inner, version, random, depth=depth + 1, flexible_from=flexible_from
            )

        setattr(made, field.attribute, _random_value(field, version, random, draw))
    if version >= flexible_from and random.random() < 0.1:
        made.unknown_tagged_fields = random_tags(random)
    return made


def _random_value(
    field: FieldFacts, version: int, random: Random, draw: Callable[[str], Any]
) -> Any:
    if field.is_nullable_in(version) and random.random() < 0.25:
        return None
    if not field.kind.startswith("[]"):
        return draw(field.kind)
    name = field.kind.removeprefix("[]")
    is_long = name in RANDOM and random.random() < 0.05
    return [
        draw(name) for _ in range(random.randrange(12, 140) if is_long else random.randrange(4))
    ]


@cache
def fields_with_classes(
    module: str, name: str
) -> tuple[tuple[FieldFacts, type[Struct] | None], ...]:
    """Return the fields of a class, each with the class of its elements if they are structs."""
    kind: type[Struct] = getattr(sys.modules[module], name)
    return tuple((field, element_class(kind, field.kind)) for field in fields_of(kind))


def random_tags(random: Random) -> list[tuple[int, bytes]]:
    """Draw tags that no schema knows, in their order."""
    tags = sorted({FIRST_UNKNOWN_TAG + random.randrange(1 << 20) for _ in range(2)})
    return [(tag, random.randbytes(random.randrange(200))) for tag in tags]


def random_text(random: Random) -> str:
    """Draw a string, seldom one whose length takes two bytes."""
    length = random.randrange(100, 300) if random.random() < 0.05 else random.randrange(12)
    return "".join(random.choices(random.choice(ALPHABETS), k=length))


def _number(bits: int, *, is_signed: bool = True) -> Callable[[Random], int]:
    lowest = -(1 << (bits - 1)) if is_signed else 0
    highest = lowest + (1 << bits) - 1

    def draw(random: Random) -> int:
        return random.choice((lowest, highest, 0, 1, random.randint(lowest, highest)))

    return draw


def _blob(random: Random) -> bytes:
    return random.randbytes(random.randrange(40))


RANDOM: Mapping[str, Callable[[Random], Any]] = {
    "bool": lambda random: random.random() < 0.5,
    "int8": _number(8),
    "int16": _number(16),
    "uint16": _number(16, is_signed=False),
    "int32": _number(32),
    "uint32": _number(32, is_signed=False),
    "int64": _number(64),
    "float64": lambda random: random.choice((0.0, -1.5, random.uniform(-1e9, 1e9))),
    "string": random_text,
    "uuid": lambda random: random.randbytes(16),
    "bytes": _blob,
    "records": lambda random: memoryview(_blob(random)),
}
