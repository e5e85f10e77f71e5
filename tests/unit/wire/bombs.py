"""Messages made to cost their reader as much as they can for their length."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.random_messages import fields_with_classes

from kvorum.wire.api_table import MODULES
from kvorum.wire.apis import message_class
from kvorum.wire.json_form import FieldFacts
from kvorum.wire.primitives import Message, Struct

Step = tuple[FieldFacts, type[Struct] | None]
# Values that cannot be shared: numbers beyond the small ones, strings that are no single character.
COSTLY = {
    "bool": True, "int8": -100, "int16": -1000, "uint16": 60_000, "int32": -100_000,
    "uint32": 1 << 31, "int64": 1 << 62, "float64": 1.5, "string": "ab", "uuid": b"u" * 16,
    "bytes": b"ab", "records": b"ab",
}  # fmt: skip


CHEAP = {"string": "", "bytes": b"", "uuid": bytes(16)}


@dataclass(frozen=True, slots=True)
class Bomb:
    """A message with one long list, at the end of `path`."""

    kind: type[Message]
    version: int
    path: tuple[Step, ...]

    @property
    def name(self) -> str:
        fields = ".".join(field.json_name for field, _ in self.path)
        return f"{self.kind.NAME} version {self.version} {fields}"

    def encode(self, count: int, *, is_costly: bool) -> bytes:
        """Return the message with `count` elements, each empty or as costly as it can be."""
        message = self.kind()
        owner: Struct = message
        for field, inner in self.path[:-1]:
            assert inner is not None
            step = cheapest(inner, self.version)
            setattr(owner, field.attribute, [step] if field.kind.startswith("[]") else step)
            owner = step
        field, inner = self.path[-1]
        element = element_of(field, inner, self.version, is_costly=is_costly)
        setattr(owner, field.attribute, [element] * count)
        return message.encode(self.version)


def element_of(
    field: FieldFacts, inner: type[Struct] | None, version: int, *, is_costly: bool
) -> Any:
    if inner is not None:
        return costly(inner, version) if is_costly else cheapest(inner, version)
    name = field.kind.removeprefix("[]")
    return COSTLY[name] if is_costly else CHEAP.get(name, 0)


def costly(kind: type[Struct], version: int) -> Struct:
    """Return a struct all of whose fields cost memory; lists stay empty."""
    made = kind()
    for field, inner in fields_with_classes(kind.__module__, kind.__name__):
        if field.is_in(version) and not field.kind.startswith("[]"):
            value = COSTLY[field.kind] if inner is None else costly(inner, version)
            setattr(made, field.attribute, value)
    return made


def cheapest(kind: type[Struct], version: int) -> Struct:
    """Return a struct that takes few bytes on the wire: no text, no element, structs null."""
    made = kind()
    for field, inner in fields_with_classes(kind.__module__, kind.__name__):
        if not field.is_in(version) or field.is_tagged_in(version):
            continue
        if field.kind.startswith("[]"):
            setattr(made, field.attribute, [])
        elif inner is not None:
            is_null = field.is_nullable_in(version)
            setattr(made, field.attribute, None if is_null else cheapest(inner, version))
        elif field.kind in {"string", "bytes", "records"}:
            setattr(made, field.attribute, "" if field.kind == "string" else b"")
    return made


def all_bombs() -> Iterator[Bomb]:
    """Yield every list of every message, in its oldest and its newest version."""
    for name in sorted(MODULES):
        kind = message_class(name)
        for version in sorted({kind.MIN_VERSION, kind.MAX_VERSION}):
            for path in lists(kind, version):
                yield Bomb(kind, version, path)


def lists(kind: type[Struct], version: int) -> Iterator[tuple[Step, ...]]:
    for field, inner in fields_with_classes(kind.__module__, kind.__name__):
        if not field.is_in(version):
            continue
        if field.kind.startswith("[]"):
            yield ((field, inner),)
        if inner is not None:
            yield from (((field, inner), *rest) for rest in lists(inner, version))
