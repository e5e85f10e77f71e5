"""The extraction of the protocol's facts from Kafka's published jars.

Kafka ships its message files inside its jars. Only the facts that a codec needs are kept; comments,
descriptions and licence headers are removed.
"""

import json
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kvorum.codegen.class_file import ClassFile, StaticField
from kvorum.codegen.emit_catalog import ErrorCodeFact
from kvorum.codegen.errors import CodegenError
from kvorum.codegen.parse import Json, JsonObject, as_list, as_object, parse_message

ERROR_CODES_FILE = "ErrorCodes.json"
_ERRORS_CLASS = "org/apache/kafka/common/protocol/Errors.class"
_SCHEMA_FILE = re.compile(r"(?:common/)?(?:message|metadata)/(\w+)\.json\Z")
_RELEASE = re.compile(r"-\d[\w.-]*\Z")
_METADATA_LOG = "common/metadata/"
_MESSAGE_KEYS = (
    "name", "apiKey", "type", "log", "listeners", "validVersions", "deprecatedVersions",
    "flexibleVersions", "latestVersionUnstable", "fields", "commonStructs",
)  # fmt: skip
_FIELD_KEYS = (
    "name", "type", "versions", "nullableVersions", "tag", "taggedVersions", "flexibleVersions",
    "default", "ignorable", "mapKey", "entityType", "zeroCopy", "fields",
)  # fmt: skip
_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


class Protocol(NamedTuple):
    """The messages and error codes of a release.

    `modules` names the jar that each message comes from, without the release: `kafka-clients`.
    """

    schemas: Mapping[str, JsonObject]
    modules: Mapping[str, str]
    codes: Sequence[ErrorCodeFact]


def sync(jars: Iterable[Path], folder: Path) -> int:
    """Write one file per message into `folder`, replacing its content; return their number."""
    found = read_protocol(jars)
    _write(folder, found.schemas, found.codes)
    return len(found.schemas)


def read_protocol(jars: Iterable[Path]) -> Protocol:
    """Return what the jars of one release hold; raises `CodegenError`."""
    schemas: dict[str, JsonObject] = {}
    modules: dict[str, str] = {}
    codes: list[ErrorCodeFact] = []
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for name, schema in _schemas(archive):
                if name in schemas and schemas[name] != schema:
                    raise CodegenError(f"{jar.name}: a second, different {name}")
                schemas[name] = schema
                modules[name] = _RELEASE.sub("", jar.stem)
            if _ERRORS_CLASS in archive.namelist():
                codes = error_codes(archive.read(_ERRORS_CLASS))
    if not schemas or not codes:
        raise CodegenError("the jars hold no message schemas, or no error codes")
    return Protocol(schemas, modules, codes)


def _schemas(archive: zipfile.ZipFile) -> list[tuple[str, JsonObject]]:
    found: list[tuple[str, JsonObject]] = []
    for entry in sorted(archive.namelist()):
        if _SCHEMA_FILE.match(entry):
            source = dict(as_object(json.loads(without_comments(archive.read(entry).decode()))))
            if entry.startswith(_METADATA_LOG):
                # Other logs have their own record numbers: the log is part of a record's identity.
                source["log"] = "cluster-metadata"
            facts = message_facts(source)
            parse_message(facts)
            found.append((str(facts["name"]), facts))
    return found


def without_comments(source: str) -> str:
    """Return the text with blanks for comments, except inside a string."""
    return _STRING_OR_COMMENT.sub(
        lambda match: match[0] if match[0].startswith('"') else "", source
    )


def message_facts(source: JsonObject) -> JsonObject:
    """Return the facts of a message, in a fixed order of keys."""
    facts = {key: source[key] for key in _MESSAGE_KEYS if key in source}
    for key, transform in (("fields", field_facts), ("commonStructs", struct_facts)):
        if key in facts:
            facts[key] = [transform(as_object(each)) for each in as_list(facts[key])]
    return facts


def field_facts(source: JsonObject) -> JsonObject:
    """Return the facts of a field; a tag is a number, whichever way the file spells it."""
    facts = {key: source[key] for key in _FIELD_KEYS if key in source}
    if "tag" in facts:
        facts["tag"] = int(str(facts["tag"]))
    if "fields" in facts:
        facts["fields"] = [field_facts(as_object(each)) for each in as_list(facts["fields"])]
    return facts


def struct_facts(source: JsonObject) -> JsonObject:
    """Return the facts of a common struct."""
    fields: Json = [field_facts(as_object(each)) for each in as_list(source.get("fields"))]
    return {"name": source["name"], "versions": source.get("versions", "0+"), "fields": fields}


def error_codes(class_file: bytes) -> list[ErrorCodeFact]:
    """Return the error codes that the class of Kafka's enum holds."""
    facts: list[ErrorCodeFact] = []
    for constant in ClassFile(class_file).enum_constants():
        code, *rest = constant.arguments
        message = rest[0] if rest else None
        if not isinstance(code, int) or isinstance(message, int | StaticField):
            raise CodegenError(f"error code {constant.name} is not what was expected")
        facts.append(ErrorCodeFact(constant.name, code, message))
    return facts


def read_error_codes(folder: Path) -> list[ErrorCodeFact]:
    """Return the error codes that `sync` wrote."""
    rows = json.loads((folder / ERROR_CODES_FILE).read_text(encoding="utf-8"))
    return [ErrorCodeFact(str(row["name"]), int(row["code"]), row["message"]) for row in rows]


def _write(folder: Path, schemas: Mapping[str, JsonObject], codes: Iterable[ErrorCodeFact]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.json"):
        stale.unlink()
    for name, schema in schemas.items():
        (folder / f"{name}.json").write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")
    rows = [{"name": fact.name, "code": fact.code, "message": fact.message} for fact in codes]
    text = json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
    (folder / ERROR_CODES_FILE).write_text(text, encoding="utf-8")
