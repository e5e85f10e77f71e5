"""Names and imports: promised, unused, in one namespace, and without circles in a room."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import grimp
import pytest
from tests.support.node_process import run_python
from tests.support.source_tree import ROOT, SOURCE_ROOTS, SourceFile, python_files
from tools.unused_code import (
    ALLOWED,
    LEFTOVERS,
    CheckError,
    Finding,
    keys_in,
    parsed,
    problems,
    without,
)

ROOMS = (
    *("codegen", "wire", "storage", "raft", "metadata", "controller", "broker", "node"),
    *("coordinator", "groups", "internal_topics", "testing", "cli", "spark", "simulation"),
    *("history", "inspection", "log_files", "quorum_client"),
)
PURE_FOLDERS = (
    "wire/kvorum/wire",
    *(f"server/kvorum/{room}" for room in ("raft", "metadata", "controller", "broker")),
    "server/kvorum/coordinator",
    "server/kvorum/groups",
    "server/kvorum/internal_topics",
)
FOUND = Finding("server/kvorum/raft/epoch_election.py", 7, "function", "tally")
SOURCE = """\
def used() -> int: return 1
def only_tests_call_this() -> int: return 2
VALUE = used()
def main() -> int: return VALUE
main()
"""


def declared_names(file: SourceFile) -> list[str] | None:
    for node in file.tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            assert isinstance(node.value, ast.List | ast.Tuple), f"{file.name}: odd __all__"
            return [ast.literal_eval(element) for element in node.value.elts]
    return None


def bound_names(file: SourceFile) -> set[str]:
    names: set[str] = set()
    for node in file.tree.body:
        if isinstance(node, ast.ImportFrom | ast.Import):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def test_everything_in_all_is_there() -> None:
    missing = [
        f"{file.name}: {name}"
        for file in python_files(*SOURCE_ROOTS)
        for name in declared_names(file) or []
        if name not in bound_names(file) and "__getattr__" not in bound_names(file)
    ]
    assert missing == []


def test_no_source_root_closes_the_namespace() -> None:
    closing = [root for root in SOURCE_ROOTS if (ROOT / root / "kvorum" / "__init__.py").exists()]
    assert closing == [], "a kvorum/__init__.py hides the other source roots; remove it"


@pytest.mark.parametrize("root", SOURCE_ROOTS)
def test_each_part_is_marked_as_typed(root: str) -> None:
    folder = ROOT / root / "kvorum"
    parts = {path.relative_to(folder).parts[0] for path in folder.rglob("*.py")}
    assert parts
    assert [part for part in sorted(parts) if not (folder / part / "py.typed").exists()] == []


@cache
def import_graph() -> grimp.ImportGraph:
    """Everything that is imported, inside of functions and for type checkers too."""
    return grimp.build_graph(*(f"kvorum.{room}" for room in ROOMS), cache_dir=None)


def circles(imports: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """Yield every largest set of modules that all reach each other (Tarjan)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_modules: list[str] = []

    def visit(module: str) -> Iterator[list[str]]:
        order[module] = lowest[module] = len(order)
        open_modules.append(module)
        for imported in sorted(imports[module]):
            if imported not in order:
                yield from visit(imported)
            if imported in open_modules:
                lowest[module] = min(lowest[module], lowest[imported])
        if lowest[module] == order[module]:
            start = open_modules.index(module)
            circle = sorted(open_modules[start:])
            del open_modules[start:]
            if len(circle) > 1:
                yield circle

    for module in sorted(imports):
        if module not in order:
            yield from visit(module)


def test_circles_are_found() -> None:
    imports = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set[str](), "e": {"a"}}
    assert list(circles(imports)) == [["a", "b", "c"]]


@pytest.mark.parametrize("room", ROOMS)
def test_modules_of_a_room_do_not_import_each_other_in_a_circle(room: str) -> None:
    package = f"kvorum.{room}"
    graph = import_graph()
    modules = {name for name in graph.modules if name == package or name.startswith(f"{package}.")}
    imports = {name: graph.find_modules_directly_imported_by(name) & modules for name in modules}
    found = [[name.removeprefix(f"{package}.") for name in circle] for circle in circles(imports)]
    assert found == []


def random_imports(file: SourceFile) -> Iterator[str]:
    """Yield where `random` is imported for anything but the type of what is handed in."""
    allowed = {
        statement
        for node in file.tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
    }
    for node in file.nodes:
        is_random = (isinstance(node, ast.ImportFrom) and node.module == "random") or (
            isinstance(node, ast.Import) and any(each.name == "random" for each in node.names)
        )
        if is_random and (node not in allowed or ast.unparse(node) != "from random import Random"):
            assert isinstance(node, ast.stmt)
            yield f"{file.name}:{node.lineno}: {ast.unparse(node)}"


def test_the_core_knows_of_random_only_the_type_of_what_is_handed_in() -> None:
    found = [problem for file in python_files(*PURE_FOLDERS) for problem in random_imports(file)]
    assert found == []


@pytest.mark.process
def test_what_vulture_prints_is_read(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(SOURCE)
    done = run_python("-m", "vulture", "module.py", folder=tmp_path)
    assert parsed(done.stdout) == [Finding("module.py", 2, "function", "only_tests_call_this")]


def test_a_line_that_is_not_understood_is_not_a_success() -> None:
    with pytest.raises(CheckError, match="cannot open"):
        parsed("cannot open module.py\n")


def test_a_name_that_is_not_listed_is_reported_with_its_place() -> None:
    assert problems([FOUND], []) == [
        "server/kvorum/raft/epoch_election.py:7: unused function tally (kvorum.raft tally)"
    ]
    assert problems([FOUND], ["kvorum.raft tally"]) == []


def test_a_listed_name_that_is_not_found_is_reported() -> None:
    assert problems([], ["kvorum.raft tally"]) == [
        "listed, but not found: kvorum.raft tally (--prune removes it)"
    ]


def test_pruning_takes_out_lines_and_keeps_the_comments() -> None:
    text = "# Head.\n\nkvorum.raft tally  # a reason\nkvorum.wire from_json\n"
    assert keys_in(text) == ["kvorum.raft tally", "kvorum.wire from_json"]
    assert without(text, frozenset({"kvorum.raft tally"})) == "# Head.\n\nkvorum.wire from_json\n"


def test_whatever_may_stay_has_a_reason_and_stands_in_one_list() -> None:
    lines = ALLOWED.read_text("utf-8").splitlines()
    listed = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in listed if not line.partition("  # ")[2]] == []
    keys = keys_in(ALLOWED.read_text("utf-8")) + keys_in(LEFTOVERS.read_text("utf-8"))
    assert len(keys) == len(set(keys))
