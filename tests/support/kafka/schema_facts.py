"""What Kafka's compiled classes say of messages, and what our schemas say, in one form."""

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from tests.support.kafka.codec_oracle import CodecOracle, message_name
from tests.support.kafka.java import Java

from kvorum.codegen.model import MessageSpec, StructSpec
from kvorum.codegen.naming import json_name
from kvorum.codegen.plan import FieldLayout, Layout, layouts
from kvorum.wire.uuid_text import ZERO_UUID, uuid_to_text

SOURCE = Path(__file__).resolve().parents[1] / "java" / "SchemaFacts.java"
# A line of JSON: its shape is checked by comparing it as a whole.
Facts: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class KafkasFacts:
    """Messages by name, APIs by key, and the error codes with their names and messages."""

    messages: dict[str, Facts]
    apis: dict[int, Facts]
    errors: dict[int, Facts]


def facts_of_kafka(java: Java) -> KafkasFacts:
    """Ask the classes in the jars."""
    with tempfile.TemporaryDirectory() as folder:
        names = Path(folder) / "classes"
        names.write_text("\n".join(CodecOracle(java).class_names) + "\n")
        command = java.command("SchemaFacts", str(names), classes=java.compile(SOURCE))
        done = subprocess.run(command, capture_output=True, check=True)
    rows: list[Facts] = [json.loads(line) for line in done.stdout.splitlines()]
    return KafkasFacts(
        messages={message_name(row["class"]): row for row in rows if "class" in row},
        apis={row["api"]: row for row in rows if "api" in row},
        errors={row["error"]: row for row in rows if "error" in row},
    )


def plain(name: str) -> str:
    """Return a name as both spellings of it come to, with underscores and with capitals."""
    return name.replace("_", "").lower()


def plain_schema(schema: list[Any]) -> list[Any]:
    """Return a schema of Kafka's with plain names."""
    return [_plain_row(row) for row in schema]


def _plain_row(row: Any) -> Any:
    if isinstance(row, dict):
        return {tag: _plain_row(inner) for tag, inner in cast("Facts", row).items()}
    name, *kinds = row
    return [plain(name), *(kind if isinstance(kind, str) else plain_schema(kind) for kind in kinds)]


# -- ours --------------------------------------------------------------------------------------


def our_schemas(spec: MessageSpec) -> dict[str, list[Any]]:
    """Return the schema of every version in the form of `plain_schema`."""
    spans = layouts(spec, spec.root)
    return {
        str(version): _schema(
            next(span for span in spans if span.lowest <= version <= span.highest)
        )
        for version in spec.versions.each()
    }


def _schema(layout: Layout) -> list[Any]:
    rows: list[Any] = [_row(layout, each) for each in layout.plain]
    if layout.is_flexible:
        rows.append({str(each.field.tag): _row(layout, each) for each in layout.tagged})
    return rows


def _row(layout: Layout, each: FieldLayout) -> list[Any]:
    kind = each.field.type
    compact = "COMPACT_" if each.is_compact else ""
    nullable = "NULLABLE_" if each.is_nullable else ""
    row: list[Any] = [plain(each.field.name)]
    if kind.is_array:
        row.append(f"{compact}{nullable}ARRAY")
        nullable = ""
    if kind.is_struct:
        return [*row, f"{nullable}STRUCT", _schema(layout.of_struct(kind.name))]
    if kind.name in {"string", "bytes", "records"}:
        return [*row, f"{compact}{nullable}{kind.name.upper()}"]
    return [*row, {"bool": "BOOLEAN"}.get(kind.name, kind.name.upper())]


def our_structs(spec: MessageSpec) -> dict[str, Facts]:
    """Return the defaults of every struct's fields, and which of them are lists."""
    return {
        "" if struct is spec.root else struct.name: _defaults(spec, struct)
        for struct in spec.structs
    }


def _defaults(spec: MessageSpec, struct: StructSpec) -> Facts:
    found: Facts = {}
    for field in struct.fields:
        kind = field.type
        shape = ""
        if kind.is_array:
            is_keyed = kind.is_struct and any(
                one.is_map_key for one in spec.struct(kind.name).fields
            )
            shape = "keyed list" if is_keyed else "list"
        default: Any = field.default
        if field.has_null_default or kind.name == "records":
            default = None
        elif kind.is_array:
            default = 0
        elif kind.is_struct:
            default = "struct"
        elif kind.name == "uuid":
            default = uuid_to_text(ZERO_UUID)
        found[json_name(field.name)] = [default, shape]
    return found
