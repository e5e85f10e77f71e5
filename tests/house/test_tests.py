"""Tests lend each other nothing, and texts name tests that are there."""

import re

import pytest
from tests.support.source_tree import ROOT, python_files, tracked_files

# Places in the tests: `tests/unit/raft`, `tests.support.waiting`, and `wait_for` after the latter.
_PATH = re.compile(r"\btests/[\w./-]*\w")
_DOTTED = re.compile(r"(?<![\w.])tests(?:\.[a-z_]\w*)+")
_LENT = re.compile(r"^\s*(?:from|import) tests\.[\w.]*\b(?:test_|conftest\b).*", re.MULTILINE)
_NAMED_IN = {".md", ".py", ".toml", ".yml", ".yaml", ""}


def test_no_test_module_and_no_conftest_is_imported() -> None:
    found = [
        f"{file.name}: {line}"
        for file in python_files("tests", "benchmarks", "tools")
        for line in _LENT.findall(file.text)
    ]
    assert found == []


def is_module(dotted: str) -> bool:
    """Return whether a module or a folder of modules bears the name."""
    path = ROOT.joinpath(*dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


@pytest.mark.process
def test_every_place_in_the_tests_that_a_text_names_is_there() -> None:
    missing = [
        f"{path.relative_to(ROOT).as_posix()}: {name}"
        for path in tracked_files()
        if path.suffix in _NAMED_IN and path.name != "CHANGELOG.md" and "golden" not in path.parts
        for name in sorted(named_places(path.read_text("utf-8")))
    ]
    assert missing == []


def named_places(text: str) -> set[str]:
    """Return the places in the tests that a text names and that are not there."""
    missing = {
        name
        for name in _PATH.findall(text)
        if not (ROOT / name.removesuffix("test_")).exists() and not (ROOT / f"{name}.py").exists()
    }
    for dotted in _DOTTED.findall(text):
        parts = dotted.split(".")
        # The last two parts may be names in the module, and the first folder is never all of it.
        shortest = max(2, len(parts) - 2)
        if not any(is_module(".".join(parts[:n])) for n in range(len(parts), shortest - 1, -1)):
            missing.add(dotted)
    return missing


def test_a_place_that_is_not_there_is_found() -> None:
    gone = {"tests/" + "unit/gone/test_x.py", "tests." + "unit.gone.module.name"}
    assert named_places(f"`tests/unit/raft`, {' and '.join(gone)}, tests.support.waiting") == gone


@pytest.mark.process
def test_the_page_about_the_tests_explains_every_folder() -> None:
    page = (ROOT / "tests" / "README.md").read_text("utf-8")
    files = (path.relative_to(ROOT).parts for path in tracked_files())
    folders = {parts[1] for parts in files if parts[0] == "tests" and len(parts) > 2}
    assert {name for name in folders if f"| `{name}/` |" not in page} == set()
