"""The layouts of a struct: each span of versions with the same layout gets its own code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from kvorum.codegen.model import FIXED_WIDTHS, Field, MessageSpec, StructSpec

Signature: TypeAlias = tuple[object, ...]

# The memory of values as CPython 3.11 makes them on 64 bits, on the large side. Readers
# count with these, so that few bytes from outside cannot become many in memory.
OBJECT_BYTES = 40
LIST_BYTES = 72
LIST_SLOT_BYTES = 20
"""A pointer, while the list it stands in is copied to grow."""
SHORT_VALUE_BYTES = 84
"""A string, bytes or uuid with its place in a list; what long ones take is on the wire too."""
UNKNOWN_TAG_BYTES = 180
_VALUE_BYTES = {
    "bool": 0, "int8": 32, "int16": 32, "uint16": 32, "int32": 32, "uint32": 32, "int64": 40,
    "float64": 24, "uuid": 64, "string": 64, "bytes": 48, "records": 208,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """The layout of one field in one span of versions."""

    field: Field
    is_present: bool
    is_nullable: bool
    is_tagged: bool
    is_compact: bool
    """Whether lengths and counts are varints."""


@dataclass(frozen=True)
class Layout:
    """The layout of one struct in one span of versions."""

    message: MessageSpec
    struct: StructSpec
    lowest: int
    highest: int

    @cached_property
    def is_flexible(self) -> bool:
        """Whether the struct ends in a tagged section."""
        return self.lowest in self.message.flexible

    @cached_property
    def fields(self) -> tuple[FieldLayout, ...]:
        """Every field of the struct, the absent ones included."""
        return tuple(self._layout(field) for field in self.struct.fields)

    def _layout(self, field: Field) -> FieldLayout:
        version = self.lowest
        return FieldLayout(
            field,
            is_present=version in field.versions,
            is_nullable=version in field.nullable,
            is_tagged=field.is_tagged(version) and version in field.versions,
            is_compact=self.is_flexible and version in field.flexible,
        )

    @property
    def plain(self) -> list[FieldLayout]:
        """The fields before the tagged section, in order."""
        return [each for each in self.fields if each.is_present and not each.is_tagged]

    @property
    def tagged(self) -> list[FieldLayout]:
        """The fields of the tagged section, by tag."""
        found = [each for each in self.fields if each.is_present and each.is_tagged]
        return sorted(found, key=lambda each: each.field.tag or 0)

    @property
    def absent(self) -> list[FieldLayout]:
        """The fields that this span does not contain."""
        return [each for each in self.fields if not each.is_present]

    def of_struct(self, name: str) -> Layout:
        """Return the layout of another struct of the message at this one's versions."""
        return next(
            layout
            for layout in layouts(self.message, self.message.struct(name))
            if layout.lowest <= self.lowest <= layout.highest
        )

    @property
    def bytes_min(self) -> int:
        """The minimum size of the struct in bytes; it limits how many fit in the rest."""
        return sum(self._bytes_min(each) for each in self.plain) + self.is_flexible

    def _bytes_min(self, each: FieldLayout) -> int:
        kind = each.field.type
        if kind.is_fixed:
            return FIXED_WIDTHS[kind.name][1]
        if kind.is_struct and not kind.is_array:
            return 1 if each.is_nullable else self.of_struct(kind.name).bytes_min
        if each.is_compact:
            return 1
        return 2 if kind.name == "string" and not kind.is_array else 4

    @property
    def memory_bytes(self) -> int:
        """The memory of one such struct in a list, without the elements of its own lists."""
        slots = 8 * (len(self.fields) + 1)
        return LIST_SLOT_BYTES + OBJECT_BYTES + slots + sum(map(self._memory_bytes, self.plain))

    @property
    def tagged_memory_bytes(self) -> int:
        """The maximum memory of the known tags."""
        return sum(map(self._memory_bytes, self.tagged))

    def _memory_bytes(self, each: FieldLayout) -> int:
        kind = each.field.type
        if kind.is_array:
            return LIST_BYTES
        if kind.is_struct:
            return self.of_struct(kind.name).memory_bytes
        return _VALUE_BYTES[kind.name]


def layouts(message: MessageSpec, struct: StructSpec) -> list[Layout]:
    """Cut the struct's versions into spans of equal layout."""
    versions = message.versions & struct.versions
    spans: list[Layout] = []
    previous: Signature | None = None
    for version in versions.each():
        signature = _signature(message, struct, version)
        if signature == previous:
            spans[-1] = Layout(message, struct, spans[-1].lowest, version)
        else:
            spans.append(Layout(message, struct, version, version))
        previous = signature
    return spans


def _signature(message: MessageSpec, struct: StructSpec, version: int) -> Signature:
    is_flexible = version in message.flexible
    parts: list[object] = [is_flexible]
    for field in struct.fields:
        is_present = version in field.versions
        parts.append((is_present, version in field.nullable, field.is_tagged(version)))
        if is_present and field.type.is_struct:
            parts.append(_signature(message, message.struct(field.type.name), version))
    return tuple(parts)
