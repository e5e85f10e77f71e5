"""The model of a message schema, as frozen values."""

from dataclasses import dataclass

from kvorum.codegen.versions import ALL, NONE, Versions

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
