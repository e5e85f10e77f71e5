"""The model of a message schema, as frozen values: ranges of versions, fields, names in Python.

Ranges are written `3`, `1-4`, `2+`, `none`.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from kvorum.codegen.errors import CodegenError

VERSION_MAX = 32_767
_TEXT = re.compile(r"(\d+)(?:(\+)|-(\d+))?\Z")
FIXED_WIDTHS = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
}
"""Type to its format character and its bytes on the wire."""
BLOBS = frozenset({"bytes", "records"})
Scalar = int | float | bool | str | None
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class Versions:
    """Every version from `lowest` to `highest`, both included; none if the range is empty."""

    lowest: int
    highest: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Read the text form; raises `CodegenError`."""
        if text == "none":
            return NONE
        match = _TEXT.match(text)
        if match is None:
            raise CodegenError(f"not a range of versions: {text!r}")
        lowest = int(match[1])
        if match[2]:
            return cls(lowest, VERSION_MAX)
        return cls(lowest, int(match[3]) if match[3] else lowest)

    def __bool__(self) -> bool:
        return self.lowest <= self.highest

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def __and__(self, other: Versions) -> Versions:
        return Versions(max(self.lowest, other.lowest), min(self.highest, other.highest)) or NONE

    def each(self) -> range:
        """Every version of a closed range."""
        return range(self.lowest, self.highest + 1)


NONE = Versions(0, -1)
ALL = Versions(0, VERSION_MAX)


@dataclass(frozen=True, slots=True)
class FieldType:
    """`name` is a primitive's name or a struct's; an array holds elements of it."""

    name: str
    is_array: bool = False

    @property
    def is_struct(self) -> bool:
        """Whether the element is a struct."""
        return self.name not in FIXED_WIDTHS and self.name not in BLOBS and self.name != "string"

    @property
    def is_fixed(self) -> bool:
        """Whether the field always takes the same number of bytes."""
        return not self.is_array and self.name in FIXED_WIDTHS


@dataclass(frozen=True, slots=True)
class Field:
    """One field; `default` is the value as Python has it, None for null."""

    name: str
    type: FieldType
    versions: Versions
    nullable: Versions = NONE
    tagged: Versions = NONE
    tag: int | None = None
    default: Scalar = None
    has_null_default: bool = False
    is_ignorable: bool = False
    is_map_key: bool = False
    flexible: Versions = ALL
    """Only RequestHeader's client id has fewer versions here: it never has the compact encoding."""

    def is_tagged(self, version: int) -> bool:
        """Whether the field stands in the tagged section at `version`."""
        return self.tag is not None and version in self.tagged


@dataclass(frozen=True, slots=True)
class StructSpec:
    """A struct with its fields in the order of the wire."""

    name: str
    versions: Versions
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class MessageSpec:
    """A message and every struct in it; `root` is the message itself."""

    name: str
    kind: str
    api_key: int | None
    versions: Versions
    flexible: Versions
    listeners: tuple[str, ...]
    is_latest_unstable: bool
    root: StructSpec
    structs: tuple[StructSpec, ...]

    def struct(self, name: str) -> StructSpec:
        """Return the struct called `name`."""
        return next(struct for struct in self.structs if struct.name == name)


def snake_case(name: str) -> str:
    """Return `leader_epoch` for `LeaderEpoch`."""
    found = _WORD.sub("_", name).lower()
    return f"{found}_" if keyword.iskeyword(found) else found


def json_name(name: str) -> str:
    """Return the name in Kafka's JSON form and its messages: the first letter in lower case."""
    return name[:1].lower() + name[1:]


def class_name(message: str, struct: str) -> str:
    """Return the class of a struct: unique, because request and response share a module."""
    return struct if struct.startswith(message) else message + struct


def module_name(spec: MessageSpec) -> str:
    """Return the name of the module: request and response share one."""
    name = spec.name
    if spec.kind in {"request", "response"}:
        name = name.removesuffix("Request").removesuffix("Response")
    return snake_case(name)
