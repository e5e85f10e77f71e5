"""Names in back quotes, in docstrings and pages: what they name is there."""

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, cast

import pytest
from tests.support.source_tree import ROOT, SOURCE_ROOTS, SourceFile, is_the_projects, python_files

FOLDERS: Final = (*SOURCE_ROOTS, "tests", "benchmarks", "tools")
QUOTED: Final = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
NAME: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
WORD: Final = re.compile(r"[A-Za-z_]\w*")
PATH: Final = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*(?:\.(?:py|java)|/)")
CODE_BLOCK: Final = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
SEEN: Final = "see "
"""Before a name that is to be looked up: a variable of a function cannot be meant."""
LETTERS_MIN: Final = 3
"""Shorter names are those of formulas."""
OUR_PAGES: Final = (
    *("docs/ARCHITECTURE.md", "docs/verification.md", "docs/wire.md"),
    *("CONTRIBUTING.md", "tests/README.md"),
)
"""Pages whose names are those of this project, and not of Kafka's."""
OTHERS_NAMES: Final = frozenset({
    # of libraries
    "ArrowInvalid", "DataSourceStreamReader", "DataType", "dataSource", "fastcrc", "simpleString",
    # of Kafka
    "AbstractRequest", "getErrorResponse",
})  # fmt: skip
EXAMPLES: Final = frozenset({"move_bytes_max", "LeaderEpoch", "aria_label", "maybe_"})
"""Samples of names."""
NOT_THERE: Final = frozenset({
    # a sample of an API, and what there must never be
    "server/kvorum/controller/apis/alter_widgets.py", "kvorum/__init__.py",
    # what building makes
    "dist/",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring, or the text below a constant, and its line."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Names:
    """The docstrings of a file, the names that it uses, and those that it defines."""

    docstrings: tuple[Docstring, ...]
    used: frozenset[str]
    defined: frozenset[str]


def docstrings_of(file: SourceFile) -> Iterator[ast.Constant]:
    for node in file.nodes:
        body = getattr(node, "body", None)
        for statement in cast("list[ast.stmt]", body) if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield statement.value


def names_of(file: SourceFile) -> Names:
    docstrings = [node for node in docstrings_of(file) if isinstance(node.value, str)]
    told = {id(node) for node in docstrings}
    used: set[str] = set()
    defined = {*Path(file.name).with_suffix("").parts}
    for node in file.nodes:
        if id(node) not in told:
            used.update(used_by(node))
            defined.update(defined_by(node))
    texts = tuple(Docstring(node.lineno, str(node.value)) for node in docstrings)
    return Names(texts, frozenset(used), frozenset(defined))


def used_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a part of a program uses, words of its texts among them."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.keyword) and node.arg:
        yield node.arg
    elif isinstance(node, ast.alias):
        yield from node.name.split(".")
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from WORD.findall(node.value)


def defined_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a part of a program defines for others: no variables of functions."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    if isinstance(node, ast.arg):
        yield node.arg
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr
    if isinstance(node, ast.Module | ast.ClassDef):
        for statement in node.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign):
                yield from assigned_by(statement)


def assigned_by(statement: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))


@cache
def all_names() -> dict[SourceFile, Names]:
    return {file: names_of(file) for file in python_files(*FOLDERS)}


@cache
def known_everywhere() -> frozenset[str]:
    """Return what any file may name: what is defined somewhere, and columns of tables."""
    defined = {name for names in all_names().values() for name in names.defined}
    return frozenset({
        *defined, *columns(), *dir(builtins), *sys.stdlib_module_names, *OTHERS_NAMES, *EXAMPLES,
    })  # fmt: skip


def columns() -> Iterator[str]:
    """Yield the texts of the product that look like one name, as those of columns do."""
    for file in python_files(*SOURCE_ROOTS):
        told = {id(node) for node in docstrings_of(file)}
        for node in file.nodes:
            if (
                isinstance(node, ast.Constant)
                and id(node) not in told
                and isinstance(node.value, str)
                and WORD.fullmatch(node.value)
            ):
                yield node.value


def stale_in(text: str, used: frozenset[str]) -> Iterator[str]:
    """Yield the names in back quotes of a text that no file defines; `used` may be named too."""
    for found in QUOTED.finditer(text):
        name = found[1].removesuffix("()")
        if len(name) < LETTERS_MIN or not NAME.fullmatch(name) or PATH.fullmatch(name):
            continue
        unknown = set(name.split(".")) - known_everywhere()
        if not text[: found.start()].endswith(SEEN):
            unknown -= used
        if unknown and not is_key(name):
            yield name


def is_key(name: str) -> bool:
    """Tell whether a name is one of a configuration key: parts that no file defines, with dots."""
    return name.count(".") >= 2 and name == name.lower() and not name.startswith("kvorum.")


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_name_what_is_there(folder: str) -> None:
    stale = [
        f"{file.name}:{docstring.line}: {name}"
        for file, names in all_names().items()
        if file.name.startswith(f"{folder}/")
        for docstring in names.docstrings
        for name in stale_in(docstring.text, names.used)
    ]
    assert stale == []


@cache
def files() -> list[Path]:
    """Return the project's files, but for hidden ones of the root."""
    folders = (*FOLDERS, "docs", "json-schemas", ".ci", ".github")
    below = (path for folder in folders for path in sorted((ROOT / folder).rglob("*")))
    return [path for path in (*sorted(ROOT.glob("*.*")), *below) if is_the_projects(path)]


@cache
def parts_of_paths() -> frozenset[str]:
    """Return every part of the path of a file, from any folder on to any other."""
    found: set[str] = set()
    for path in files():
        parts = path.relative_to(ROOT).parts
        for begin in range(len(parts)):
            found |= {"/".join(parts[begin:end]) for end in range(begin + 1, len(parts) + 1)}
    return frozenset(found)


def is_there(path: str) -> bool:
    """Tell whether there is a file or folder whose path ends so; a `*` is for a part of a name."""
    if "*" not in path:
        return path.rstrip("/") in parts_of_paths()
    pattern = re.compile(re.escape(path.rstrip("/")).replace(r"\*", "[^/]*"))
    return any(map(pattern.fullmatch, parts_of_paths()))


def missing_paths(text: str) -> list[str]:
    """Return the files and folders that a text names and that are not there.

    What is written large stands for any name.
    """
    named = [name for name in QUOTED.findall(text) if PATH.fullmatch(name)]
    return [
        name
        for name in named
        if name == name.lower() and name not in NOT_THERE and not is_there(name)
    ]


PAGES: Final = [
    path.relative_to(ROOT).as_posix()
    for path in files()
    if path.suffix == ".md" and path.relative_to(ROOT).parts[:2] != ("tests", "golden")
]


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_files_and_folders_that_are_there(page: str) -> None:
    text = CODE_BLOCK.sub("", (ROOT / page).read_text("utf-8"))
    assert missing_paths(text) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_name_files_that_are_there(folder: str) -> None:
    missing = [
        f"{file.name}:{docstring.line}: {path}"
        for file, names in all_names().items()
        if file.name.startswith(f"{folder}/")
        for docstring in names.docstrings
        for path in missing_paths(docstring.text)
    ]
    assert missing == []


@pytest.mark.parametrize("page", OUR_PAGES)
def test_pages_name_classes_and_functions_that_are_there(page: str) -> None:
    text = CODE_BLOCK.sub("", (ROOT / page).read_text("utf-8"))
    used = frozenset(name for names in all_names().values() for name in names.used)
    assert list(stale_in(text, used)) == []


@pytest.mark.parametrize(
    ("text", "stale"),
    [
        ("`SourceFile` and `python_files()` of `tests.support.source_tree`", []),
        ("`no_such_helper` leads there", ["no_such_helper"]),
        ("made by `SourceFile.no_such_method`", ["SourceFile.no_such_method"]),
        ("the answer in `out_of_range`", []),
        ("(see `out_of_range`)", ["out_of_range"]),
        ("`log.cleaner.dedupe.buffer.size` bytes, `n` of them", []),
    ],
)
def test_a_name_is_stale_where_no_file_defines_it(text: str, stale: list[str]) -> None:
    assert list(stale_in(text, frozenset({"out_of_range"}))) == stale
