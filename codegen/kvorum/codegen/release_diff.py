"""The differences of two releases of Kafka, as tables in Markdown.

Messages, error codes and features are read in the jars; configuration keys take a Java (see
`read_definitions`). Lines are in a fixed order: by number or name, fields as in the message.
"""

import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kvorum.codegen.class_file import ClassFile, Constant, StaticField
from kvorum.codegen.emit_catalog import ErrorCodeFact
from kvorum.codegen.errors import CodegenError
from kvorum.codegen.parse import Json, JsonObject, as_list, as_object
from kvorum.codegen.sync import Protocol, read_protocol

PROGRAM = Path("tests/support/java/ConfigDefinitions.java")
"""The program that prints the definitions, from the root of the project."""
_SYNONYMS = {"topic": "topic_synonyms", "group": "group_synonyms"}
_PACKAGE = "org/apache/kafka/server/common"
_FEATURES = f"{_PACKAGE}/Feature"
_METADATA_VERSION = f"{_PACKAGE}/MetadataVersion"
_FOR_KAFKAS_OWN_TESTS = ("test.", "unit.test.")
ABSENT = "-"
_APIS = "APIs"
_TITLES = {
    "kafka-metadata": "Records of the metadata log",
    "kafka-group-coordinator": "Records of groups",
    "kafka-transaction-coordinator": "Records of transactions",
    "kafka-share-coordinator": "Records of share groups' state",
    "kafka-clients": "Control records and others of kafka-clients",
}
_HEAD_KEYS = (
    "validVersions", "deprecatedVersions", "flexibleVersions", "latestVersionUnstable", "listeners",
)  # fmt: skip
_CONTAINED = frozenset({"name", "fields"})


class NoDefinitionsError(CodegenError):
    """The definitions cannot be had; the text says what is missing."""


def read_definitions(jars: Path) -> dict[str, dict[str, JsonObject]]:
    """Return `definitions_in` what the classes in a folder of jars say.

    Raises `NoDefinitionsError`.
    """
    return definitions_in(_printed(jars))


def definitions_in(printed: str) -> dict[str, dict[str, JsonObject]]:
    """Return the facts of each key by scope and key, from the program's output.

    The scopes are topic, broker, broker_dynamic_only, group and client_metrics. Where a key takes
    its default from a broker's key, the facts have `synonyms`.
    """
    whole = as_object(json.loads(printed))
    found: dict[str, dict[str, JsonObject]] = {}
    for scope, rows in whole.items():
        if scope not in _SYNONYMS.values():
            synonyms = whole[_SYNONYMS[scope]] if scope in _SYNONYMS else None
            found[scope] = _by_key(as_list(rows), as_object(synonyms or {}))
    return found


def _by_key(rows: Sequence[Json], synonyms: Mapping[str, Json]) -> dict[str, JsonObject]:
    found: dict[str, JsonObject] = {}
    for row in rows:
        facts = dict(as_object(row))
        name = str(facts.pop("name"))
        if name in synonyms:
            facts["synonyms"] = synonyms[name]
        found[name] = facts
    return found


def _printed(jars: Path) -> str:
    java = shutil.which("java")
    if java is None or not PROGRAM.is_file():
        raise NoDefinitionsError(f"they need a JDK on the path, and {PROGRAM} in this folder")
    done = subprocess.run(  # noqa: S603 - Java is the one on the path, the program is ours
        [java, "-cp", f"{jars}/*", str(PROGRAM)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise NoDefinitionsError(
            f"they need a JDK, and all that a broker runs with in {jars}: {said[0] if said else ''}"
        )
    return done.stdout


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature: what is said of each of its levels, and which is the latest for production.

    The text of a level of metadata.version is its name, as in 4.4-IV2, and whether the records
    changed with it. That of another feature's level is the metadata.version from which on it is
    the default, and the levels of other features that it depends on.
    """

    name: str
    levels: Mapping[int, str]
    production: int


def read_features(jars: Iterable[Path]) -> list[Feature]:
    """Return the features in the jars of one release, by name; raises `CodegenError`."""
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            if f"{_FEATURES}.class" in archive.namelist():
                return sorted(_features(archive), key=lambda feature: feature.name)
    raise CodegenError(f"the jars hold no {_FEATURES}, which is there from Kafka 4.0 on")


def _features(archive: zipfile.ZipFile) -> Iterable[Feature]:
    names = _metadata_version_names(archive)
    yield _feature(archive, "metadata.version", _METADATA_VERSION, names)
    for constant in _class(archive, _FEATURES).enum_constants():
        name, *rest = constant.arguments
        owners = {value.owner for value in rest if isinstance(value, StaticField)}
        if not isinstance(name, str):
            raise CodegenError(f"feature {constant.name} is not what was expected")
        if not name.startswith(_FOR_KAFKAS_OWN_TESTS):
            (owner,) = owners
            yield _feature(archive, name, owner, names)


def _class(archive: zipfile.ZipFile, name: str) -> ClassFile:
    return ClassFile(archive.read(f"{name}.class"))


def _metadata_version_names(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return the name of each metadata version by its constant, second names included."""
    versions = _class(archive, _METADATA_VERSION)
    names = {one.name: _release_and_number(one.arguments) for one in versions.enum_constants()}
    names.update({second: names[first] for second, first in versions.aliases().items()})
    return names


def _release_and_number(arguments: Iterable[Constant]) -> str:
    return "-".join(value for value in arguments if isinstance(value, str))


def _feature(
    archive: zipfile.ZipFile, name: str, owner: str, version_names: Mapping[str, str]
) -> Feature:
    found = _class(archive, owner)
    levels: dict[int, str] = {}
    by_constant: dict[str, int] = {}
    for constant in found.enum_constants():
        level, *rest = constant.arguments
        if not isinstance(level, int):
            raise CodegenError(f"level {constant.name} of {name} is not what was expected")
        by_constant[constant.name] = level
        if owner == _METADATA_VERSION:
            levels[level] = version_names[constant.name] + (", new records" if rest[-1] else "")
        else:
            levels[level] = ", ".join(_shown(value, version_names) for value in rest)
    return Feature(name, levels, by_constant[found.aliases()["LATEST_PRODUCTION"]])


def _shown(value: Constant, version_names: Mapping[str, str]) -> str:
    if isinstance(value, StaticField):
        return version_names[value.name] if value.owner == _METADATA_VERSION else value.name
    return str(value)


class Difference(NamedTuple):
    """One line of a table; `old` or `new` is `ABSENT` where a release has no such thing."""

    subject: str
    what: str
    old: str
    new: str


class Release(NamedTuple):
    """The facts of one release that are read without a Java."""

    protocol: Protocol
    features: Sequence[Feature]


def read_release(folder: Path) -> Release:
    """Read the jars in a folder; raises `CodegenError`."""
    jars = sorted(folder.glob("kafka*.jar"))
    return Release(read_protocol(jars), read_features(jars))


def release_diff(old: Path, new: Path) -> str:
    """Return all differences of two folders of jars that are named after their releases.

    Raises `CodegenError` where jars are missing or are not as expected.
    """
    tables = differences_of(read_release(old), read_release(new))
    try:
        definitions = read_definitions(old), read_definitions(new)
    except NoDefinitionsError as error:
        remark = f"## Configuration keys\n\nNot compared: {error}.\n"
    else:
        tables.update(definition_differences(*definitions))
        remark = ""
    head = f"| | what | {old.name} | {new.name} |\n|---|---|---|---|\n"
    parts = [f"# Kafka {new.name} beside {old.name}\n"]
    for title, rows in tables.items():
        lines = "".join(f"| {' | '.join(_escaped(cell) for cell in row)} |\n" for row in rows)
        parts.append(f"## {title}\n\n{head + lines if rows else 'Nothing differs.' + chr(10)}")
    return "\n".join([*parts, remark] if remark else parts)


def differences_of(old: Release, new: Release) -> dict[str, list[Difference]]:
    """Return what differs in messages, error codes and features: a table for each kind."""
    before, after = _messages(old.protocol), _messages(new.protocol)
    tables = {
        title: list(_message_rows(before.get(title, {}), after.get(title, {})))
        for title in sorted({*before, *after}, key=lambda title: (title != _APIS, title))
    }
    tables["Error codes"] = list(_error_rows(old.protocol.codes, new.protocol.codes))
    tables["Features"] = list(_feature_rows(old.features, new.features))
    return tables


def definition_differences(
    old: Mapping[str, Mapping[str, JsonObject]], new: Mapping[str, Mapping[str, JsonObject]]
) -> dict[str, list[Difference]]:
    """Return what differs in configuration definitions: a table for each scope."""
    return {
        f"Configuration keys: {scope}": list(_definition_rows(old.get(scope, {}), definitions))
        for scope, definitions in new.items()
    }


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")


def _messages(protocol: Protocol) -> dict[str, dict[str, JsonObject]]:
    """Return the messages by the title of their table and by name, in order of their numbers."""
    found: dict[str, dict[str, JsonObject]] = {}
    for name, schema in sorted(protocol.schemas.items(), key=_place):
        if schema["type"] in {"request", "response", "header"}:
            title = _APIS
        else:
            module = protocol.modules[name]
            title = _TITLES.get(module, f"Records of {module}")
        found.setdefault(title, {})[name] = schema
    return found


def _place(named: tuple[str, JsonObject]) -> tuple[int, str]:
    name, schema = named
    return int(str(schema.get("apiKey", -1))), name


def _message_rows(
    old: Mapping[str, JsonObject], new: Mapping[str, JsonObject]
) -> Iterator[Difference]:
    for name, schema in sorted({**old, **new}.items(), key=_place):
        subject = f"{name} ({schema['apiKey']})" if "apiKey" in schema else name
        if name in old and name in new:
            yield from _changed_message_rows(subject, old[name], new[name])
        else:
            yield _whole(subject, name, old, new, _head_text)


def _whole(
    subject: str,
    key: str,
    old: Mapping[str, JsonObject],
    new: Mapping[str, JsonObject],
    text_of: Callable[[JsonObject], str],
) -> Difference:
    """Return the line of what only one of both releases has."""
    if key in new:
        return Difference(subject, "new", ABSENT, text_of(new[key]))
    return Difference(subject, "gone", text_of(old[key]), ABSENT)


def _head_text(schema: JsonObject) -> str:
    facts = {key: schema[key] for key in _HEAD_KEYS if key in schema}
    return _facts_text({**facts, "fields": len(_fields(schema))})


def _changed_message_rows(subject: str, old: JsonObject, new: JsonObject) -> Iterator[Difference]:
    for key in ("apiKey", *_HEAD_KEYS):
        if old.get(key) != new.get(key):
            yield Difference(subject, key, _optional_text(old, key), _optional_text(new, key))
    before, after = _fields(old), _fields(new)
    for path in [*after, *(path for path in before if path not in after)]:
        if before.get(path) != after.get(path):
            row = before.get(path, ABSENT), after.get(path, ABSENT)
            yield Difference(subject, f"field {path}", *row)
    orders = _moved([path for path in before if path in after], [p for p in after if p in before])
    if any(orders):
        yield Difference(subject, "order of fields", *(", ".join(order) for order in orders))


def _moved(old: Sequence[str], new: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the part of two orders of the same paths in which they differ."""
    unequal = [index for index, pair in enumerate(zip(old, new, strict=True)) if len({*pair}) > 1]
    part = slice(unequal[0], unequal[-1] + 1) if unequal else slice(0)
    return old[part], new[part]


def _fields(schema: JsonObject) -> dict[str, str]:
    """Return the facts of every field by its path, in order; common structs begin paths too."""
    found = dict(_fields_in(schema, ""))
    for each in as_list(schema.get("commonStructs")):
        struct = as_object(each)
        found.update(_fields_in(struct, f"{struct['name']}."))
    return found


def _fields_in(struct: JsonObject, prefix: str) -> Iterator[tuple[str, str]]:
    for each in as_list(struct.get("fields")):
        field = as_object(each)
        path = f"{prefix}{field['name']}"
        yield path, _facts_text({key: field[key] for key in field if key not in _CONTAINED})
        yield from _fields_in(field, f"{path}.")


def _error_rows(old: Sequence[ErrorCodeFact], new: Sequence[ErrorCodeFact]) -> Iterator[Difference]:
    before, after = ({fact.code: fact for fact in facts} for facts in (old, new))
    for code in sorted({*before, *after}):
        texts = [
            f"{facts[code].name}: {facts[code].message}" if code in facts else ABSENT
            for facts in (before, after)
        ]
        if texts[0] != texts[1]:
            yield Difference(str(code), _kind(texts), *texts)


def _kind(texts: Sequence[str]) -> str:
    if ABSENT not in texts:
        return "changed"
    return "new" if texts[0] == ABSENT else "gone"


def _feature_rows(old: Sequence[Feature], new: Sequence[Feature]) -> Iterator[Difference]:
    before, after = ({one.name: _feature_facts(one) for one in features} for features in (old, new))
    for name in sorted({*before, *after}):
        facts = before.get(name, {}), after.get(name, {})
        for key in [*facts[1], *(key for key in facts[0] if key not in facts[1])]:
            row = facts[0].get(key, ABSENT), facts[1].get(key, ABSENT)
            if row[0] != row[1]:
                yield Difference(name, key, *row)


def _feature_facts(feature: Feature) -> dict[str, str]:
    """Return what is said of a feature: its limits, and each level with its state."""
    levels = sorted(feature.levels)
    facts = {"lowest level": str(levels[0]), "production level": str(feature.production)}
    for level in levels:
        state = "production" if level <= feature.production else "unstable"
        facts[f"level {level}"] = f"{feature.levels[level]}, {state}"
    return facts


def _definition_rows(
    old: Mapping[str, JsonObject], new: Mapping[str, JsonObject]
) -> Iterator[Difference]:
    for key in sorted({*old, *new}):
        if key in old and key in new:
            for what in [*new[key], *(what for what in old[key] if what not in new[key])]:
                if old[key].get(what) != new[key].get(what):
                    row = _optional_text(old[key], what), _optional_text(new[key], what)
                    yield Difference(key, what, *row)
        else:
            yield _whole(key, key, old, new, _facts_text)


def _facts_text(facts: JsonObject) -> str:
    """Return facts in words; what is false or null is left out, an empty default is not."""
    words: list[str] = []
    for key, value in facts.items():
        if key == "type":
            words.append(str(value))
        elif value is True:
            words.append(key)
        elif value is not None and value is not False:
            words.append(f"{key} {_text(value)}")
    return ", ".join(words)


def _optional_text(facts: JsonObject, key: str) -> str:
    return _text(facts[key]) if key in facts else ABSENT


def _text(value: Json) -> str:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, Sequence) and value and all(isinstance(each, str) for each in value):
        return ", ".join(str(each) for each in value)
    return json.dumps(value)
