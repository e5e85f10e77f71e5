"""The configuration definitions of a release, read in a Java that runs its classes."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from kvorum.codegen.errors import CodegenError
from kvorum.codegen.parse import Json, JsonObject, as_list, as_object

PROGRAM = Path("tests/support/java/ConfigDefinitions.java")
"""The program that prints the definitions, from the root of the project."""
_SYNONYMS = {"topic": "topic_synonyms", "group": "group_synonyms"}


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
