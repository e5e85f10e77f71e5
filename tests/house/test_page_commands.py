"""The commands in the project's pages: each is there, takes its options, and selects something."""

import importlib.util
import json
import re
import shlex
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from itertools import takewhile
from pathlib import Path
from typing import Final

import pytest
from tests.support.node_process import run_python
from tests.support.page_blocks import PAGES
from tests.support.source_tree import ROOT, SOURCE_ROOTS
from tools.soak import PARTS

from kvorum.cli import COMMANDS, main

PROGRAMS: Final = "pytest|make|kvorum|python -m"
QUOTED: Final = re.compile(
    rf"`((?:KVORUM_\w+=\S+ )*(?:\.venv/bin/)?(?:{PROGRAMS}) [^`]*)`", re.DOTALL
)
SHOWN: Final = re.compile(rf"^\$ ((?:{PROGRAMS}) (?:.*\\\n)*.*)", re.MULTILINE)
"""A command in a block of code, with the lines that it goes on in."""
SUBSTITUTED: Final = re.compile(r"\$\([^)]*\)")
ENVIRONMENT: Final = re.compile(r"\bKVORUM_[A-Z_]+\b")
OPTION: Final = re.compile(r"--?[a-z][\w-]*")
WORD: Final = re.compile(r"[a-z][a-z-]*")
PYTEST_TARGETS: Final = frozenset({"quick", "model", "test", "test-all", "interop"})
PYTEST_COMMANDS_MIN: Final = 9
COLLECTS: Final = """
import contextlib, io, json, sys
import pytest

codes = {}
for name, words in json.loads(sys.argv[1]).items():
    with contextlib.redirect_stdout(io.StringIO()):
        codes[name] = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *words])
print(json.dumps(codes))
"""
"""Collects the tests of each command, and prints pytest's exit codes: 5 where it finds no test."""


@dataclass(frozen=True, slots=True)
class PageCommand:
    """A command line, and the page that shows it."""

    page: str
    line: str

    def __str__(self) -> str:
        return f"{self.page}: {self.line}"

    @property
    def words(self) -> list[str]:
        """The words of the command, without variables before it and comments after it."""
        words = shlex.split(SUBSTITUTED.sub("SUBSTITUTED", self.line), comments=True)
        while ENVIRONMENT.match(words[0]):
            words.pop(0)
        return [words[0].removeprefix(".venv/bin/"), *words[1:]]


def commands() -> list[PageCommand]:
    """Return the commands of all pages, each once for a page."""
    return [
        PageCommand(page.relative_to(ROOT).as_posix(), " ".join(line.replace("\\\n", "").split()))
        for page in PAGES
        for text in [page.read_text("utf-8")]
        for line in dict.fromkeys((*QUOTED.findall(text), *SHOWN.findall(text)))
    ]


def is_of(program: str) -> list[PageCommand]:
    return [one for one in commands() if one.words[0] == program]


# -- pytest ------------------------------------------------------------------------------------


def pytest_arguments(command: PageCommand) -> list[str] | None:
    """Return what a command hands to pytest, None where it runs no tests or all of them."""
    program, *words = command.words
    if program == "pytest":
        return words
    given = [word.removeprefix("ARGS=") for word in words if word.startswith("ARGS=")]
    is_for_pytest = program == "make" and words[0] in PYTEST_TARGETS
    return shlex.split(given[0]) if is_for_pytest and given else None


@pytest.mark.process
def test_pytest_has_tests_to_run() -> None:
    """Its own words decide, in one process for all: it compares names of parameters as well."""
    asked = {str(one): words for one in commands() if (words := pytest_arguments(one))}
    assert len(asked) >= PYTEST_COMMANDS_MIN
    done = run_python("-c", COLLECTS, json.dumps(asked))
    assert done.returncode == 0, done.stdout + done.stderr
    codes: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    assert codes == dict.fromkeys(asked, 0)


# -- make --------------------------------------------------------------------------------------


@cache
def makefile() -> str:
    return (ROOT / "Makefile").read_text("utf-8")


@pytest.mark.parametrize("command", is_of("make"), ids=str)
def test_make_has_the_target_and_its_variables(command: PageCommand) -> None:
    _, target, *settings = command.words
    assert re.search(rf"^(?:[\w-]+ )*{target}(?: [\w-]+)*:", makefile(), re.MULTILINE)
    for setting in settings:
        name, _, value = setting.partition("=")
        assert f"$({name})" in makefile()
        if name == "ARGS":
            _check_arguments(target, shlex.split(value))


def _check_arguments(target: str, arguments: Sequence[str]) -> None:
    """Check what a target hands on to its program."""
    if target == "soak":
        assert PARTS.keys() >= {*arguments}
    elif target == "bench":
        assert all(f'"{one}":' in source_of("benchmarks") for one in arguments)
    elif target == "run":
        assert unknown_to("dev", arguments) == []
    elif target not in PYTEST_TARGETS:
        assert not arguments, f"what {target} does with arguments is not known here"


# -- python -m ---------------------------------------------------------------------------------


def source_of(module: str) -> str:
    """Return the source of a module, or of the one by which a package runs."""
    found = importlib.util.find_spec(module)
    assert found is not None, f"there is no module {module}"
    if found.submodule_search_locations is not None:
        return source_of(f"{module}.__main__")
    assert found.origin is not None
    return Path(found.origin).read_text("utf-8")


@pytest.mark.parametrize("command", is_of("python"), ids=str)
def test_python_has_the_module_and_its_options(command: PageCommand) -> None:
    _, _, module, *arguments = command.words
    source = source_of(module)
    for option in filter(OPTION.fullmatch, arguments):
        assert f'"{option}"' in source


# -- kvorum ------------------------------------------------------------------------------------


def help_of(words: Sequence[str]) -> str | None:
    """Return the help of a command, None for a command that is not known."""
    with redirect_stdout(StringIO()) as told, redirect_stderr(told):
        main([*words, "--help"])
    # Some exit as Kafka's tools do: with 1 after their help.
    return None if ": error: " in told.getvalue() else told.getvalue()


def unknown_to(command: str, arguments: Sequence[str]) -> list[str]:
    """Return the words and options of a command line that the command does not know.

    A word before all values names a command of its own; a later one may.
    """
    leading = [*takewhile(WORD.fullmatch, arguments)]
    path = [command, *leading]
    if help_of(path) is None:
        return path
    for word in filter(WORD.fullmatch, arguments[len(leading) :]):
        path += [word] if help_of([*path, word]) is not None else []
    shown = "".join(help_of(path[:end]) or "" for end in range(1, len(path) + 1))
    options = {word.partition("=")[0] for word in arguments if OPTION.fullmatch(word)}
    return sorted(option for option in options if option not in shown)


@pytest.mark.parametrize("command", is_of("kvorum"), ids=str)
def test_kvorum_has_the_command_and_its_options(command: PageCommand) -> None:
    _, name, *arguments = command.words
    assert name in {*COMMANDS, "--version"}
    assert unknown_to(name, arguments) == []


# -- the environment ---------------------------------------------------------------------------


def test_variables_of_the_environment_are_read_somewhere() -> None:
    roots = (*SOURCE_ROOTS, "tests", "benchmarks", "tools")
    sources = "".join(
        path.read_text("utf-8") for name in roots for path in sorted((ROOT / name).rglob("*.py"))
    )
    named = {one for page in PAGES for one in ENVIRONMENT.findall(page.read_text("utf-8"))}
    assert named
    assert sorted(one for one in named if f'"{one}"' not in sources) == []
