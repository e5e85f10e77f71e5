"""The files: small, listed with what each is, and there where a page names them.

So is everything that docs/kafka-names.md gives for a class or method of Kafka's.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from tests.support.source_tree import ROOT, SOURCE_ROOTS, SourceFile, python_files
from tools.files import first_line, is_meant, main, modules

ARCHITECTURE = "ARCHITECTURE.md"
KAFKA_NAMES = "kafka-names.md"
PAGES = (ARCHITECTURE, KAFKA_NAMES)
# A page that is read from top to bottom: lists of files are printed by tools/files.py.
ARCHITECTURE_BYTES_MAX = 15 * 1024
ROOM = re.compile(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|", re.MULTILINE)
IMPORT = re.compile(r"^ *(?:from|import) kvorum\.(\w+)", re.MULTILINE)
IN_QUOTES = re.compile(r"`([^`\n]+)`")
PYTHON_FILE = re.compile(r"[\w./*<>-]+\.py")
FOLDER = re.compile(r"[\w.-]+(?:/[\w.-]+)*/")
MODULE = re.compile(
    r"(?:kvorum\.)?((?:codegen|wire|storage|raft|metadata|controller|coordinator|groups|broker|node"
    r"|testing|simulation|history|client_histories|internal_topics|log_files|quorum_client|spark|inspection|cli)(?:\.[a-z_]+)+)"
)
MUST_NOT_BE_THERE = frozenset({"kvorum/__init__.py"})
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
WORKFLOW = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
PRE_COMMIT = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
SAMPLE_MODULE = "server/kvorum/raft/voter_changes/steps.py"


@dataclass(frozen=True)
class Counterpart:
    """A row of the table: what Kafka has, and one file of ours with what it defines of that."""

    kafka: str
    path: str
    symbols: tuple[str, ...]


def text(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


def files_named_in(cell: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each file of a cell with the symbols that stand after it."""
    path, symbols = "", list[str]()
    for token in IN_QUOTES.findall(cell):
        if not token.endswith(".py"):
            symbols.append(token)
            continue
        if path:
            yield path, tuple(symbols)
        path, symbols = token, []
    yield path, tuple(symbols)


@cache
def counterparts() -> list[Counterpart]:
    """Everything that the tables of Kafka's names give."""
    found: list[Counterpart] = []
    for line in text(KAFKA_NAMES).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| `"):
            continue
        assert len(cells) == 3, line
        found += [Counterpart(cells[0], *named) for named in files_named_in(cells[1])]
    return found


@cache
def symbols_of(path: Path) -> frozenset[str]:
    """The classes, functions and methods that a module defines; methods as Class.method."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found: set[str] = set()
    for node in SourceFile(path).tree.body:
        if isinstance(node, definitions):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, definitions)]
            found |= {f"{node.name}.{method.name}" for method in methods}
    return frozenset(found)


def places_of(pattern: str, folders: tuple[str, ...]) -> list[Path]:
    """Return the file of a path from the root, from `kvorum`, or from one of `folders`."""
    starts = ("", *(f"{root}/kvorum" for root in SOURCE_ROOTS), *folders)
    places = [ROOT / start / re.sub(r"<\w+>", "*", pattern.rstrip("/")) for start in starts]
    return [path for place in places for path in place.parent.glob(place.name)]


def test_the_tables_of_kafkas_names_are_read() -> None:
    names = {row.kafka for row in counterparts()}
    assert len(names) >= 180
    assert "`KafkaRaftClient.handleFetchRequest`" in names


@pytest.mark.parametrize("row", counterparts(), ids=lambda row: f"{row.kafka} in {row.path}")
def test_what_stands_for_a_class_of_kafkas_is_there(row: Counterpart) -> None:
    (path,) = places_of(row.path, ())
    assert row.symbols, "no symbol is named"
    assert set(row.symbols) - symbols_of(path) == set()


def passages(page: str) -> Iterator[str]:
    """Yield each paragraph, and each line of a table."""
    for paragraph in text(page).split("\n\n"):
        yield from paragraph.splitlines() if paragraph.startswith("|") else [paragraph]


def missing_in(passage: str) -> Iterator[str]:
    """Yield the files and folders that a passage names and that are not there."""
    tokens = IN_QUOTES.findall(passage)
    folders = tuple(token for token in tokens if FOLDER.fullmatch(token))
    for token in tokens:
        is_path = PYTHON_FILE.fullmatch(token) or FOLDER.fullmatch(token)
        if is_path and token not in MUST_NOT_BE_THERE and not places_of(token, folders):
            yield token


@pytest.mark.parametrize("page", PAGES)
def test_every_file_and_folder_that_is_named_exists(page: str) -> None:
    assert [token for passage in passages(page) for token in missing_in(passage)] == []


def test_every_module_that_is_named_exists() -> None:
    texts = (text(page) for page in PAGES)
    tokens = [one for each in texts for one in IN_QUOTES.findall(each) if not one.endswith(".py")]
    named = [found.group(1) for token in tokens if (found := MODULE.fullmatch(token))]
    assert named
    missing = [
        name
        for name in named
        if not places_of(name.replace(".", "/"), ())
        and not places_of(f"{name.replace('.', '/')}.py", ())
    ]
    assert missing == []


def test_each_room_knows_the_rooms_that_the_page_names() -> None:
    known = {
        room: sorted(cell.strip().split(", ")) if cell.strip() else []
        for room, cell in ROOM.findall(text(ARCHITECTURE))
    }
    imported = {
        package.name: sorted(
            {
                name
                for file in python_files(package.relative_to(ROOT).as_posix())
                for name in IMPORT.findall(file.text)
                if name != package.name
            }
        )
        for root in SOURCE_ROOTS
        for package in (ROOT / root / "kvorum").iterdir()
        if (package / "__init__.py").exists()
    }
    assert known == imported


def test_the_page_of_the_architecture_stays_short() -> None:
    assert len(text(ARCHITECTURE).encode()) <= ARCHITECTURE_BYTES_MAX


def test_the_workflow_tests_on_every_python_that_is_claimed() -> None:
    matrix = re.search(r"python: \[(.+)\]", WORKFLOW)
    assert matrix is not None
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert re.findall(r'"([\d.]+)"', matrix[1]) == claimed
    assert PROJECT["requires-python"] == f">={claimed[0]}"
    assert "run: make test" in WORKFLOW


def test_pre_commit_runs_what_make_check_all_runs() -> None:
    recipes = re.findall(r"^check(?:-all)?: .*\n((?:\t.+\n)+)", MAKEFILE, re.MULTILINE)
    commands = re.findall(r"\$\(BIN\)/(.+)", "".join(recipes))
    assert len(commands) >= 7
    entries = re.findall(r"entry: \.venv/bin/(.+)", PRE_COMMIT)
    assert [words_of(entry) for entry in entries] == [words_of(command) for command in commands]


def words_of(command: str) -> set[str]:
    """The words of a command without the files it is given."""
    return set(command.split()) - {".", "--force-exclude"}


def test_pre_commit_needs_no_network() -> None:
    assert re.findall(r"repo: (\S+)", PRE_COMMIT) == ["local"]
    assert set(re.findall(r"language: (\S+)", PRE_COMMIT)) == {"system"}


def test_every_tool_that_is_run_has_its_version_in_constraints() -> None:
    pinned = set(re.findall(r"^([\w-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    asked = {
        re.split(r"[\[<>=; ]", need)[0]
        for needs in PROJECT["optional-dependencies"].values()
        for need in needs
    }
    assert asked - pinned == set()


def functions(file: SourceFile) -> Iterator[tuple[str, int]]:
    """Name and length of each function, its docstring not counted."""
    for node in file.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, body_lines(node)


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    total = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    is_docstring = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    if not is_docstring:
        return total
    return total - ((first.end_lineno or first.lineno) - first.lineno + 1)


def test_no_function_is_longer_than_the_house_allows() -> None:
    too_long = [
        f"{file.name}: {name} has {lines} lines"
        for file in python_files(*SOURCE_ROOTS, "benchmarks", "tools")
        for name, lines in functions(file)
        if lines > FUNCTION_LINES_MAX
    ]
    assert too_long == []


def test_no_file_is_longer_than_the_house_allows() -> None:
    too_long = [
        f"{file.name}: {len(file.text.splitlines())} lines"
        for file in python_files(*SOURCE_ROOTS, "tests", "benchmarks", "tools")
        if len(file.text.splitlines()) > FILE_LINES_MAX
    ]
    assert too_long == []


def test_modules_are_ordered_by_room_and_generated_ones_are_left_out(tmp_path: Path) -> None:
    sources = {
        "wire/kvorum/wire/headers.py": '"""Headers."""\n',
        "wire/kvorum/wire/messages/fetch.py": '# Generated by kvorum.codegen\n"""Fetch."""\n',
        "tools/files.py": '"""The list.\n\nMore.\n"""\n',
        "server/kvorum/raft/core.py": '"""The core."""\n',
        "storage/kvorum/storage/log/segment.py": '"""One segment."""\n',
    }
    for path, text in sources.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert modules(tmp_path) == [
        ("server/kvorum/raft/core.py", "The core."),
        ("storage/kvorum/storage/log/segment.py", "One segment."),
        ("wire/kvorum/wire/headers.py", "Headers."),
        ("tools/files.py", "The list."),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('"""One.\n\nMore.\n"""\n', "One."),
        ('# pyright: basic\n"""One."""\n', "One."),
        ('r"""A \\d."""\n', "A \\d."),
        ("import os\n", ""),
    ],
)
def test_the_first_line_of_a_docstring_is_read(text: str, line: str) -> None:
    assert first_line(text) == line


@pytest.mark.parametrize(
    "name",
    [
        "raft",
        "kvorum.raft",
        "raft/voter_changes",
        "kvorum.raft.voter_changes.steps",
        "server/kvorum/raft/",
        SAMPLE_MODULE,
    ],
)
def test_a_module_is_found_by_its_room_its_folder_and_its_path(name: str) -> None:
    assert is_meant(SAMPLE_MODULE, name)


@pytest.mark.parametrize("name", ["voter_changes", "raft/voter", "steps.py", "wire"])
def test_a_part_of_a_path_from_its_middle_is_not_a_name(name: str) -> None:
    assert not is_meant(SAMPLE_MODULE, name)


def test_what_is_asked_for_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["raft/transitions.py", "tools"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("server/kvorum/raft/transitions.py  The table of the allowed")
    assert [line.split()[0] for line in printed[1:]] == sorted(
        path.relative_to(ROOT).as_posix() for path in (ROOT / "tools").glob("*.py")
    )


def test_a_name_without_a_module_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["raft", "raftt"]) == 1
    assert capsys.readouterr() == ("", "files: no module in raftt\n")


def test_no_module_is_listed_without_a_line() -> None:
    assert [path for path, line in modules() if not line] == []
