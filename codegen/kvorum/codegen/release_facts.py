"""The facts of a release of Kafka out of its jars: configuration definitions and feature levels."""

import json
import shutil
import subprocess
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kvorum.codegen.class_file import ClassFile, Constant, StaticField
from kvorum.codegen.errors import CodegenError
from kvorum.codegen.parse import Json, JsonObject, as_list, as_object

PROGRAM = Path("tests/support/java/ConfigDefinitions.java")
"""The program that prints the definitions, from the root of the project."""
_SYNONYMS = {"topic": "topic_synonyms", "group": "group_synonyms"}
_PACKAGE = "org/apache/kafka/server/common"
_FEATURES = f"{_PACKAGE}/Feature"
_METADATA_VERSION = f"{_PACKAGE}/MetadataVersion"
_FOR_KAFKAS_OWN_TESTS = ("test.", "unit.test.")


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
    command = [java, "-cp", f"{jars}/*", str(PROGRAM)]
    done = subprocess.run(  # noqa: S603 - Java is the one on the path, the program is ours
        command, capture_output=True, text=True, check=False
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
    latest = found.aliases()["LATEST_PRODUCTION"]
    return Feature(name, levels, by_constant[latest])


def _shown(value: Constant, version_names: Mapping[str, str]) -> str:
    if isinstance(value, StaticField):
        return version_names[value.name] if value.owner == _METADATA_VERSION else value.name
    return str(value)
