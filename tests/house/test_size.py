"""Small files and small functions: the numbers of the house measure."""

import ast
from collections.abc import Iterator

from tests.support.source_tree import SOURCE_ROOTS, SourceFile, python_files

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600


def functions(file: SourceFile) -> Iterator[tuple[str, int]]:
    """Name and length of each function, its docstring not counted."""
    for node in ast.walk(file.tree):
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
