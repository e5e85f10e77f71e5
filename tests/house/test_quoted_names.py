"""Names in back quotes, in docstrings and pages: what they name is there."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from tests.house.project_names import (
    FOLDERS,
    NAME,
    WORD,
    all_members,
    docstrings_in,
    docstrings_of,
    environment,
    is_known,
    is_reached,
    marks,
    members,
    metrics,
    module_name,
    modules,
    parameters,
    texts,
    top_level,
    types_in,
)
from tests.support.source_tree import ROOT, SourceFile, is_the_projects, python_files

QUOTED: Final = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PATH: Final = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*(?:\.(?:py|java)|/)")
CODE_BLOCK: Final = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LETTERS_MIN: Final = 3
"""Shorter names are those of formulas."""
PAGES_OF_OTHER_TESTS: Final = MappingProxyType(
    {
        "CHANGELOG.md": "says what there was",
        "docs/kafka-names.md": "tests/house/test_architecture.py",
        "docs/metrics.md": "tests/unit/node/test_metrics_page.py",
    }
)
OTHERS_NAMES: Final = frozenset({
    # of libraries
    "ArrowInvalid", "DataSourceStreamReader", "DataType.simpleString", "fastcrc", "immutables.Map",
    "StaticTable.from_metadata", "spark.dataSource.register", "spark.read.format", "availableNow",
    "processingTime", "foreachBatch", "hadoop", "OPTIMIZE", "VACUUM", "SPARK_SCALA_VERSION",
    # of Python 3.14, and of Markdown's blocks
    "compression.zstd", "console",
    # of Kafka and Java
    "AbstractRequest.getErrorResponse", "Admin", "GSSAPI", "Optional", "read_committed",
    "exactly_once_v2", "https",
    # of Kafka's clients
    "auto.offset.reset", "fetch.min.bytes", "group.instance.id",
})  # fmt: skip
EXAMPLES: Final = frozenset({
    "AAAAAAAAAAAAAAAAAAAAAQ", "LeaderEpoch", "leader_epoch", "Leader.tick", "aria_label", "class_",
    "config.replication.move_bytes_max", "maybe_", "move_bytes_max", "replica.move.max.bytes",
    "size_bytes_max",
})  # fmt: skip
"""Samples of names."""
NOT_THERE: Final = frozenset({
    # a sample of an API, and what there must never be
    "server/kvorum/controller/apis/alter_widgets.py", "kvorum/__init__.py",
    # what building makes
    "dist/",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that a docstring may use besides those of every file, and the types of values."""

    names: frozenset[str]
    types: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring, or the text below a constant, with its line and its scope."""

    line: int
    text: str
    scope: Scope


def docstrings(file: SourceFile) -> Iterator[Docstring]:
    """Yield the docstrings of a file that have back quotes."""
    for text in docstrings_of(file):
        if "`" in str(text.value):
            yield Docstring(text.lineno, str(text.value), scope_at(file, text))


def scope_at(file: SourceFile, text: ast.Constant) -> Scope:
    """Return the scope of a docstring; one inside of a class may name all that the class has."""
    (around,) = (each for each in file.tree.body if each.lineno <= text.lineno <= last_line(each))
    if isinstance(around, ast.Expr):
        whole = scope_of_module(file)
        return Scope(whole.names | names_of_package(file) | columns(file), whole.types)
    scope = scope_of(around)
    return Scope(scope.names | top_level(file) | columns(file), scope.types)


def last_line(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


@cache
def scope_of(statement: ast.stmt) -> Scope:
    """Return the names that a statement uses or defines, and the types that it tells."""
    nodes = list(ast.walk(statement))
    told = {text for node in nodes for text in docstrings_in(node)}
    nodes = [node for node in nodes if node not in told]
    names = {name for node in nodes for name in used_by(node)}
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            names.update(members(node.name))
    return Scope(frozenset(names), dict(types_in(nodes)))


@cache
def scope_of_module(file: SourceFile) -> Scope:
    """Return all names that a module uses or defines, and the types that it tells."""
    names: set[str] = set()
    types: dict[str, frozenset[str]] = {}
    for statement in file.tree.body:
        if not isinstance(statement, ast.Expr):
            scope = scope_of(statement)
            names |= scope.names
            types |= scope.types
    return Scope(frozenset(names), types)


def used_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a part of a program uses or defines, words of its texts among them."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            yield name
        case ast.keyword(arg=str() as name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=asname):
            yield from name.split(".")
            yield from () if asname is None else (asname,)
        case ast.Constant(value=str() as text):
            yield from WORD.findall(text)
        case _:
            pass


def names_of_package(file: SourceFile) -> frozenset[str]:
    """Return what the modules of a package define, for the docstring of its `__init__.py`."""
    if file.path.name != "__init__.py":
        return frozenset()
    inside = f"{module_name(file.path)}."
    files = [other for name, other in modules().items() if name.startswith(inside)]
    return frozenset(name for other in files for name in scope_of_module(other).names)


def columns(file: SourceFile) -> frozenset[str]:
    """Return the texts that may be names of columns: of tables, and of rows of a history."""
    return texts() if file.name.startswith(("spark/", "server/kvorum/history/")) else frozenset()


def quoted_names(text: str) -> Iterator[str]:
    """Yield the names in back quotes, not those of files, of formulas and of others."""
    for quoted in QUOTED.findall(text):
        name = quoted.removesuffix("()")
        is_name = NAME.fullmatch(name) and not PATH.fullmatch(name) and not is_there(name)
        if is_name and len(name) >= LETTERS_MIN and name not in OTHERS_NAMES | EXAMPLES:
            yield name


def stale_in(text: str, scope: Scope) -> list[str]:
    """Return the names in back quotes of a docstring that lead nowhere."""
    return [name for name in quoted_names(text) if not is_there_for(name, scope)]


def is_there_for(name: str, scope: Scope) -> bool:
    first, *rest = name.split(".")
    if not rest:
        return name in scope.names or is_known(name)
    return is_reached(name) or is_of_a_value(rest, scope.types.get(first, frozenset()))


def is_of_a_value(names: list[str], types: frozenset[str]) -> bool:
    """Tell whether a value of one of some types has a member of a name."""
    return len(names) == 1 and any(names[0] in members(kind) for kind in types)


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_name_what_is_there(folder: str) -> None:
    stale = [
        f"{file.name}:{docstring.line}: {name}"
        for file in python_files(folder)
        for docstring in docstrings(file)
        for name in stale_in(docstring.text, docstring.scope)
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
        f"{file.name}:{docstring.lineno}: {path}"
        for file in python_files(folder)
        for docstring in docstrings_of(file)
        for path in missing_paths(str(docstring.value))
    ]
    assert missing == []


@pytest.mark.parametrize("page", [page for page in PAGES if page not in PAGES_OF_OTHER_TESTS])
def test_pages_name_what_is_there(page: str) -> None:
    text = CODE_BLOCK.sub("", (ROOT / page).read_text("utf-8"))
    assert [name for name in quoted_names(text) if not is_there_for_pages(name)] == []


def is_there_for_pages(name: str) -> bool:
    """Tell whether a page may use a name: it says itself which class or function it is about."""
    first, *rest = name.split(".")
    if rest:
        return is_reached(name) or is_of_a_value(rest, parameters().get(first, frozenset()))
    defined = (all_members(), parameters(), texts(), marks(), metrics(), environment())
    return is_known(name) or any(name in one for one in defined)


@pytest.mark.parametrize(
    ("text", "stale"),
    [
        ("`SourceFile` and `python_files()` of `tests.support.source_tree`", []),
        ("`no_such_helper` leads there", ["no_such_helper"]),
        ("made by `SourceFile.nodes`, not `SourceFile.no_nodes`", ["SourceFile.no_nodes"]),
        ("see `source_tree.python_files`, `source_tree.no_files`", ["source_tree.no_files"]),
        ("the answer in `out_of_range`", []),
        ("`is_cut_allowed` of a function elsewhere", ["is_cut_allowed"]),
        ("`file.text` and `file.no_text`", ["file.no_text"]),
        ("`time.perf_counter` and `time.no_counter`", ["time.no_counter"]),
        ("`log.cleaner.dedupe.buffer.size` bytes, `n` of them", []),
        ("`log.cleaner.no.such.size` bytes", ["log.cleaner.no.such.size"]),
    ],
)
def test_a_name_is_stale_where_it_leads_nowhere(text: str, stale: list[str]) -> None:
    scope = Scope(frozenset({"out_of_range"}), {"file": frozenset({"SourceFile"})})
    assert stale_in(text, scope) == stale
