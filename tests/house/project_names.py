"""The names of the project: modules, their definitions, members of classes, and texts."""

import ast
import builtins
import importlib
import keyword
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.source_tree import ROOT, SOURCE_ROOTS, SourceFile, python_files, source_file

FOLDERS: Final = (*SOURCE_ROOTS, "tests", "benchmarks", "tools")
NAME: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
WORD: Final = re.compile(r"[A-Za-z_]\w*")
GENERATED_CLASS: Final = re.compile(r"^ *class (\w+)", re.MULTILINE)
DOTTED_TEXT: Final = re.compile(r'"(\w+(?:\.\w+)+)"')
"""Texts with dots in programs: keys of the configuration, and names of features."""
VARIABLE: Final = re.compile(r"\"(KVORUM_[A-Z_]+)\"")


def module_name(path: Path) -> str:
    """Return the name that a file is imported by."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] in SOURCE_ROOTS else parts
    return ".".join(parts).removesuffix(".__init__")


@cache
def generated_files() -> tuple[SourceFile, ...]:
    paths = (path for root in SOURCE_ROOTS for path in sorted((ROOT / root).rglob("*.py")))
    return tuple(file for file in map(source_file, paths) if file.is_generated)


@cache
def modules() -> dict[str, SourceFile]:
    """Return the file of every module; a package's is that of its `__init__.py`."""
    return {module_name(file.path): file for file in (*python_files(*FOLDERS), *generated_files())}


@cache
def modules_ending_in(name: str) -> tuple[SourceFile, ...]:
    """Return the modules that a name means, which may leave out packages at the front."""
    return tuple(file for module, file in modules().items() if f".{module}".endswith(f".{name}"))


@cache
def packages() -> frozenset[str]:
    """Return each word in the names of modules."""
    return frozenset(word for module in modules() for word in module.split("."))


@cache
def top_level(file: SourceFile) -> frozenset[str]:
    """Return the names that a module defines or imports."""
    if file.is_generated:
        return frozenset(GENERATED_CLASS.findall(file.text))
    return frozenset(bound_by(file.tree.body))


def bound_by(statements: list[ast.stmt]) -> Iterator[str]:
    """Yield the names that statements bind, those below an `if` or a `try` too."""
    for statement in statements:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield statement.name
            case ast.Assign() | ast.AnnAssign():
                yield from assigned_by(statement)
            case ast.Import() | ast.ImportFrom():
                yield from (one.asname or one.name for one in statement.names)
            case ast.If() | ast.Try():
                yield from bound_by([*statement.body, *statement.orelse])
            case _:
                pass


def assigned_by(statement: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))


@cache
def defined_somewhere() -> frozenset[str]:
    """Return the names that some module defines for all others: no members, no parameters."""
    return frozenset(name for file in modules().values() for name in top_level(file))


@cache
def classes() -> dict[str, tuple[ast.ClassDef, ...]]:
    """Return the hand-written classes by their names, which several may have."""
    found: dict[str, tuple[ast.ClassDef, ...]] = {}
    for file in python_files(*FOLDERS):
        for node in file.nodes:
            if isinstance(node, ast.ClassDef):
                found[node.name] = (*found.get(node.name, ()), node)
    return found


@cache
def members(class_name: str) -> frozenset[str]:
    """Return what the classes of a name have as attributes and methods, from their bases too."""
    found: set[str] = set()
    for node in classes().get(class_name, ()):
        found.update(bound_by(node.body))
        for each in ast.walk(node):
            if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
                found.add(each.attr)
        for base in node.bases:
            words = WORD.findall(ast.unparse(base))
            found.update(name for word in words if word != class_name for name in members(word))
    return frozenset(found)


@cache
def all_members() -> frozenset[str]:
    return frozenset(name for class_name in classes() for name in members(class_name))


@cache
def parameters() -> dict[str, frozenset[str]]:
    """Return the parameters of the product's functions, with the types that they have somewhere."""
    found: dict[str, frozenset[str]] = {}
    for file in python_files(*SOURCE_ROOTS):
        for name, types in types_in(file.nodes):
            found[name] = found.get(name, frozenset()) | types
    return found


def types_in(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield what has an annotation or is made by a class, with the words of its type."""
    for node in nodes:
        match node:
            case ast.arg(arg=name, annotation=annotation):
                yield name, words_of(annotation)
            case ast.AnnAssign(annotation=annotation):
                for name in assigned_by(node):
                    yield name, words_of(annotation)
            case ast.Assign(targets=[target], value=ast.Call(func=ast.Name(id=made))):
                if isinstance(target, ast.Name | ast.Attribute):
                    yield WORD.findall(ast.unparse(target))[-1], frozenset({made})
            case _:
                pass


def words_of(annotation: ast.expr | None) -> frozenset[str]:
    return frozenset() if annotation is None else frozenset(WORD.findall(ast.unparse(annotation)))


@cache
def texts() -> frozenset[str]:
    """Return the texts of the product that look like one name, as those of columns and keys do."""
    found: set[str] = set()
    for file in (*python_files(*SOURCE_ROOTS), *generated_files()):
        found.update(DOTTED_TEXT.findall(file.text))
    for file in python_files(*SOURCE_ROOTS):
        told = {id(node) for node in docstrings_of(file)}
        found.update(
            node.value
            for node in file.nodes
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in told
            and WORD.fullmatch(node.value)
        )
    return frozenset(found)


def docstrings_of(file: SourceFile) -> Iterator[ast.Constant]:
    for node in file.nodes:
        yield from docstrings_in(node)


def docstrings_in(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the texts that stand as statements of their own right below a part of a program."""
    body: list[ast.stmt] = getattr(node, "body", [])
    # That of a lambda is an expression.
    for statement in body if type(body) is list else ():
        match statement:
            case ast.Expr(value=ast.Constant(value=str()) as text):
                yield text
            case _:
                pass


@cache
def marks() -> frozenset[str]:
    """Return the marks of tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    lines: list[str] = project["tool"]["pytest"]["ini_options"]["markers"]
    return frozenset(line.partition(":")[0] for line in lines)


@cache
def metrics() -> frozenset[str]:
    """Return the words of the page of metrics, which tests/unit/node/test_metrics_page.py holds."""
    return frozenset(WORD.findall((ROOT / "docs" / "metrics.md").read_text("utf-8")))


@cache
def environment() -> frozenset[str]:
    """Return the variables of the environment that programs and tests read."""
    files = python_files(*FOLDERS)
    return frozenset(name for file in files for name in VARIABLE.findall(file.text))


@cache
def is_known(name: str) -> bool:
    """Tell whether a name without dots is Python's, or one that any file may use."""
    return (
        name in defined_somewhere()
        or name in packages()
        or hasattr(builtins, name)
        or keyword.iskeyword(name)
        or name in sys.stdlib_module_names
    )


@cache
def is_reached(name: str) -> bool:
    """Tell whether a name with dots leads to something: of a module, of a class, or of Python."""
    first, *rest = name.split(".")
    return (
        name in texts()
        or _is_in_a_module(name)
        or (first in classes() and _is_in_a_class(first, rest))
        or _is_pythons(first, rest)
    )


def _is_in_a_module(name: str) -> bool:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        for file in modules_ending_in(".".join(parts[:count])):
            rest = parts[count:]
            if not rest or (rest[0] in top_level(file) and _is_in_a_class(rest[0], rest[1:])):
                return True
    return f"{name}." in _starts_of_modules()


@cache
def _starts_of_modules() -> frozenset[str]:
    """Return the names of folders without an `__init__.py`, as modules begin with them."""
    return frozenset(f"{module.rpartition('.')[0]}." for module in modules())


def _is_in_a_class(class_name: str, rest: list[str]) -> bool:
    return not rest or (len(rest) == 1 and rest[0] in members(class_name))


def _is_pythons(first: str, rest: list[str]) -> bool:
    found: object = getattr(builtins, first, None)
    if found is None and first in sys.stdlib_module_names:
        found = importlib.import_module(first)
    for name in rest:
        found = getattr(found, name, None)
    return found is not None
