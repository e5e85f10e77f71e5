"""Calls and comments that the house does without, each with what to use instead."""

import ast
import re
from collections.abc import Iterator

import pytest
from tests.support.source_tree import ROOT, SOURCE_ROOTS, SourceFile, python_files

PURE_FOLDERS = (
    "wire",
    *(f"server/kvorum/{room}" for room in ("raft", "metadata", "controller", "broker")),
)
BANNED_IN_THE_CORE = {
    "open": "the core does no I/O; hand the bytes in",
    "time.time": "take `now` as an argument",
    "time.monotonic": "take `now` as an argument",
    "random.random": "take a random.Random at construction",
    "random.randint": "take a random.Random at construction",
    "random.choice": "take a random.Random at construction",
    "random.shuffle": "take a random.Random at construction",
    "uuid.uuid4": "draw from the random.Random that was handed in",
}
BANNED_EVERYWHERE = {
    "os.system": "use subprocess with a list",
    "eval": "parse the text",
    "exec": "write the code",
}
BARE_EXEMPTION = re.compile(r"#\s*(type: ignore(?!\[)|noqa(?!:)|pyright: ignore(?!\[))")
EXEMPTION = re.compile(
    r"#\s*(?:type: ignore\[[^\]]*\]|noqa:\s*[A-Z0-9, ]+|pyright: ignore\[[^\]]*\])"
)


def dotted_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def calls(file: SourceFile) -> Iterator[tuple[int, str]]:
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Call):
            yield node.lineno, dotted_name(node.func)


def banned_calls(file: SourceFile, banned: dict[str, str]) -> Iterator[str]:
    for line, name in calls(file):
        if name in banned:
            yield f"{file.name}:{line}: {name}(): {banned[name]}"


def test_the_core_uses_no_time_chance_or_files() -> None:
    found = [
        problem
        for file in python_files(*PURE_FOLDERS)
        for problem in banned_calls(file, BANNED_IN_THE_CORE)
    ]
    assert found == []


def test_no_call_that_is_banned_everywhere() -> None:
    found = [
        problem
        for file in python_files(*SOURCE_ROOTS, "tests", "benchmarks", "tools")
        for problem in banned_calls(file, BANNED_EVERYWHERE)
    ]
    assert found == []


def test_no_task_catches_the_cancellation_of_another_beside_its_own() -> None:
    found = [
        f"{file.name}:{number}"
        for file in python_files(*SOURCE_ROOTS)
        for number, line in enumerate(file.text.splitlines(), start=1)
        if "suppress(asyncio.CancelledError" in line
    ]
    assert found == [], "kvorum.node.tasks ends a task and leaves its caller's own cancellation"


def test_only_the_storage_room_opens_files_of_a_log() -> None:
    storage = ROOT / "storage" / "kvorum" / "storage"
    found = [
        f"{file.name}:{line}: {name}"
        for file in python_files("storage")
        if file.path != storage / "files.py"
        for line, name in calls(file)
        if name in {"open", "os.open", "os.fsync", "os.rename", "os.replace"}
    ]
    assert found == [], "the file system is reached through kvorum.storage.files alone"


@pytest.mark.parametrize("folder", [*SOURCE_ROOTS, "tests", "benchmarks", "tools"])
def test_every_exemption_names_its_code_and_its_reason(folder: str) -> None:
    found = [
        f"{file.name}:{number}: {line.strip()}"
        for file in python_files(folder)
        for number, line in enumerate(file.text.splitlines(), start=1)
        if is_unexplained(line)
    ]
    assert found == []


def is_unexplained(line: str) -> bool:
    """Tell whether `line` switches a checker off without code, or without saying why."""
    if "BARE_EXEMPTION" in line or "EXEMPTION =" in line:
        return False
    if BARE_EXEMPTION.search(line):
        return True
    match = EXEMPTION.search(line)
    return match is not None and not line[match.end() :].strip(" -#:")
