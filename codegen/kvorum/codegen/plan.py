"""Which versions of a struct have the same layout: each such span gets its own straight code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from kvorum.codegen.model import FIXED_WIDTHS, Field, MessageSpec, StructSpec

Signature: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """How one field stands in one span of versions."""

    field: Field
    is_present: bool
    is_nullable: bool
    is_tagged: bool
    is_compact: bool
    """Whether lengths and counts are varints."""


@dataclass(frozen=True)
class Layout:
    """One struct in one span of versions, all of whose bytes are laid out alike."""

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
        """What stands before the tagged section, in order."""
        return [each for each in self.fields if each.is_present and not each.is_tagged]

    @property
    def tagged(self) -> list[FieldLayout]:
        """What may stand in the tagged section, by tag."""
        found = [each for each in self.fields if each.is_present and each.is_tagged]
        return sorted(found, key=lambda each: each.field.tag or 0)

    @property
    def absent(self) -> list[FieldLayout]:
        """What this span does not carry at all."""
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
        """The fewest bytes that the struct can take; bounds how many fit in what is left."""
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
