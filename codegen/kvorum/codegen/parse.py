"""The parser of schema files: from JSON to the frozen model, with the grammar's rules checked."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from kvorum.codegen.errors import CodegenError
from kvorum.codegen.model import ALL, Field, FieldType, MessageSpec, Scalar, StructSpec, Versions

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"
JsonObject: TypeAlias = Mapping[str, Json]

_INTEGER_LIMITS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}


def read_schemas(folder: Path) -> list[MessageSpec]:
    """Return every message of a folder of schema files, by name."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise CodegenError(f"{folder} has no schema files")
    specs = [read_schema(file) for file in files if file.name != "ErrorCodes.json"]
    return sorted(specs, key=lambda spec: spec.name)


def read_schema(file: Path) -> MessageSpec:
    """Return the message that one file describes; raises `CodegenError` naming the file."""
    try:
        return parse_message(as_object(json.loads(file.read_text(encoding="utf-8"))))
    except (CodegenError, ValueError, KeyError) as error:
        raise CodegenError(f"{file.name}: {error}") from error


def as_object(value: Json) -> JsonObject:
    """Return the value as an object; raises `CodegenError`."""
    if not isinstance(value, Mapping):
        raise CodegenError(f"expected an object, got {value!r}")
    return value


def as_list(value: Json) -> Sequence[Json]:
    """Return the value as a list; the grammar takes a single value for a list of one."""
    if value is None:
        return ()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    return (value,)


def text(value: Json, default: str = "") -> str:
    """Return the value as text, `default` without one."""
    return default if value is None else str(value)


def parse_message(source: JsonObject) -> MessageSpec:
    """Return the frozen form of one message."""
    versions = Versions.parse(text(source.get("validVersions"), "none"))
    structs = tuple(_all_structs(source, versions))
    key = source.get("apiKey")
    return MessageSpec(
        name=text(source["name"]),
        kind=text(source["type"]),
        api_key=int(key) if isinstance(key, int | str) else None,
        versions=versions,
        flexible=Versions.parse(text(source.get("flexibleVersions"), "none")),
        listeners=tuple(text(value) for value in as_list(source.get("listeners"))),
        is_latest_unstable=bool(source.get("latestVersionUnstable", False)),
        root=structs[0],
        structs=structs,
    )


def _all_structs(source: JsonObject, versions: Versions) -> Iterator[StructSpec]:
    """Yield the message itself, then every struct in it, once each."""
    common = {
        text(as_object(each)["name"]): as_object(each)
        for each in as_list(source.get("commonStructs"))
    }
    pending = [(text(source["name"]), source, versions)]
    seen: set[str] = set()
    while pending:
        name, body, within = pending.pop(0)
        if name in seen:
            continue
        seen.add(name)
        struct = parse_struct(name, body, within)
        yield struct
        for raw, field in zip(as_list(body.get("fields")), struct.fields, strict=True):
            if field.type.is_struct:
                inner_name = field.type.name
                if inner_name in common:
                    # Shared by several fields, so its versions follow from no single one of them.
                    shared = common[inner_name]
                    its_own = Versions.parse(text(shared["versions"]))
                    pending.append((inner_name, shared, versions & its_own))
                else:
                    pending.append((inner_name, as_object(raw), within & field.versions))


def parse_struct(name: str, source: JsonObject, within: Versions) -> StructSpec:
    """Return one struct; its fields' versions are narrowed to where the struct itself is."""
    fields = tuple(parse_field(as_object(each), within) for each in as_list(source.get("fields")))
    tags = sorted(field.tag for field in fields if field.tag is not None)
    if tags != list(range(len(tags))):
        raise CodegenError(f"tags of {name} are not contiguous from 0: {tags}")
    return StructSpec(name, within, fields)


def parse_field(source: JsonObject, within: Versions) -> Field:
    """Return one field."""
    kind = parse_type(text(source["type"]))
    tagged = Versions.parse(text(source.get("taggedVersions"), "none"))
    versions = Versions.parse(text(source.get("versions"), text(source.get("taggedVersions"))))
    tag = source.get("tag")
    if (tag is None) != (not tagged):
        raise CodegenError(f"field {source['name']}: a tag and taggedVersions go together")
    default, is_null = parse_default(kind, source.get("default"))
    flexible = source.get("flexibleVersions")
    return Field(
        name=text(source["name"]),
        type=kind,
        versions=versions & within,
        nullable=Versions.parse(text(source.get("nullableVersions"), "none")),
        tagged=tagged,
        tag=int(tag) if isinstance(tag, int | str) else None,
        default=default,
        has_null_default=is_null,
        is_ignorable=bool(source.get("ignorable", False)),
        is_map_key=bool(source.get("mapKey", False)),
        flexible=ALL if flexible is None else Versions.parse(text(flexible)),
    )


def parse_type(source: str) -> FieldType:
    """Return the type that a text names."""
    name = source.removeprefix("[]")
    if name.startswith("[]"):
        raise CodegenError(f"arrays of arrays do not exist: {source}")
    return FieldType(name, is_array=name != source)


def parse_default(kind: FieldType, source: Json) -> tuple[Scalar, bool]:
    """Return a field's default as a Python value, and whether it is null in the schema."""
    if source is None or source == "":
        return _implied_default(kind), False
    if source == "null":
        return None, True
    spelled = str(source).lower() if isinstance(source, bool) else str(source)
    if kind.is_array or kind.is_struct or kind.name in {"bytes", "records"}:
        raise CodegenError(f"only null may be the default of {kind.name}, not {spelled}")
    if kind.name == "bool":
        return spelled == "true", False
    if kind.name == "float64":
        return float(spelled), False
    if kind.name in _INTEGER_LIMITS:
        return _integer(kind.name, spelled), False
    return spelled, False


def _implied_default(kind: FieldType) -> Scalar:
    if kind.is_array or kind.is_struct:
        return None
    if kind.name == "bool":
        return False
    if kind.name == "float64":
        return 0.0
    return 0 if kind.name in _INTEGER_LIMITS else ""


def _integer(name: str, spelled: str) -> int:
    value = int(spelled, 0)
    lowest, highest = _INTEGER_LIMITS[name]
    if not lowest <= value <= highest:
        raise CodegenError(f"default {spelled} is no {name}")
    return value
