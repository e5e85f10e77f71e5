"""The heads of modules: imports stand first and once, a comment at what it is about."""

import ast
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Final

import pytest
from tests.support.source_tree import SOURCE_ROOTS, python_files

FOLDERS: Final = (*SOURCE_ROOTS, "tests", "benchmarks", "tools")
SENTENCE_SPACES_MIN: Final = 3
HELP: Final = "HELP"
"""Each command has a text of this name, which the command line asks for."""
SHAPED: Final = "# --"
"""Begins the line that separates parts of a file."""


def imported(body: Sequence[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Yield the names that statements import, with their lines."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((node.lineno, alias.asname or alias.name) for alias in node.names)


def for_type_checkers(tree: ast.Module) -> Iterator[ast.If]:
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield node


def problems_of_imports(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module imports twice, or after those for type checkers."""
    names = list(imported(tree.body))
    for block in for_type_checkers(tree):
        names += imported(block.body)
        yield from (
            f"{name} is imported after the block for type checkers"
            for line, name in imported(tree.body)
            if line > block.lineno
        )
    counts = Counter(name for _, name in names)
    yield from (f"{name} is imported twice" for name, count in counts.items() if count > 1)


def comments_cut_off(text: str) -> Iterator[int]:
    """Yield the lines of comments at the margin that an empty line parts from what follows.

    A comment between two empty lines is about what comes after it as a whole.
    """
    lines = text.splitlines()
    for token in tokenize.generate_tokens(StringIO(text).readline):
        line = token.start[0]
        if token.type != tokenize.COMMENT or token.start[1] > 0 or line >= len(lines) - 1:
            continue
        follows = lines[line + 1]
        is_cut = not lines[line] and bool(follows) and not follows.startswith("#")
        if is_cut and not token.string.startswith((SHAPED, "#!", "# Copyright")):
            yield line


def sentences(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the public constants of a module that are sentences."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            value = node.value
            name = node.target.id
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                is_sentence = value.value.count(" ") >= SENTENCE_SPACES_MIN
                if is_sentence and not name.startswith("_"):
                    yield name, value.value


def names_of_several(texts: Mapping[str, set[str]]) -> list[str]:
    return sorted(name for name, known in texts.items() if len(known) > 1 and name != HELP)


@pytest.mark.parametrize("folder", FOLDERS)
def test_imports_stand_first_and_once(folder: str) -> None:
    found = [
        f"{file.name}: {problem}"
        for file in python_files(folder)
        for problem in problems_of_imports(file.tree)
    ]
    assert found == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_comment_stands_at_what_it_is_about(folder: str) -> None:
    found = [
        f"{file.name}:{line}"
        for file in python_files(folder)
        for line in comments_cut_off(file.text)
    ]
    assert found == []


def test_a_sentence_of_the_product_has_a_name_of_its_own() -> None:
    texts: dict[str, set[str]] = {}
    for file in python_files(*SOURCE_ROOTS):
        for name, text in sentences(file.tree):
            texts.setdefault(name, set()).add(text)
    assert len(texts) > 10
    assert names_of_several(texts) == []


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("from a import b, c\nif TYPE_CHECKING:\n    from d import e\n", []),
        ("from a import b\nif TYPE_CHECKING:\n    from a import b\n", ["b is imported twice"]),
        (
            "if TYPE_CHECKING:\n    from a import b\nfrom c import d\n",
            ["d is imported after the block for type checkers"],
        ),
    ],
)
def test_imports_twice_and_late_are_noticed(text: str, problems: list[str]) -> None:
    assert list(problems_of_imports(ast.parse(text))) == problems


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# About X.\nX = 1\n", []),
        ("X = 1\n# About Y.\n\nY = 2\n", [2]),
        ('"""A text\n# with a mark.\n\nin it."""\n', []),
        ("X = 1\n# -- a part ----\n\nY = 2\n", []),
    ],
)
def test_a_comment_that_is_cut_off_is_noticed(text: str, lines: list[int]) -> None:
    assert list(comments_cut_off(text)) == lines
