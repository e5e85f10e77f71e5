"""Pieces of Python compared by their syntax trees, found in a function and replaced there.

Formatting, comments, line wraps and superfluous parentheses make no difference.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import dedent, indent
from typing import TypeAlias, cast

_IGNORED_FIELDS = frozenset({"kind", "type_comment"})

Item: TypeAlias = ast.stmt | ast.ExceptHandler
"""Parts of blocks: statements, and the `except` clauses of a `try`."""

Piece: TypeAlias = Sequence[Item] | ast.expr
"""Consecutive items of one block, or an expression that is not a statement by itself."""


@dataclass(frozen=True, slots=True)
class Match:
    """A piece as it was found; `is_whole_block` where nothing else is in its block."""

    piece: Piece
    is_whole_block: bool = False

    @property
    def start(self) -> tuple[int, int]:
        """The line and the column in bytes where the piece begins."""
        first = self.piece if isinstance(self.piece, ast.expr) else self.piece[0]
        decorators: list[ast.expr] = getattr(first, "decorator_list", [])
        if decorators:
            return decorators[0].lineno, first.col_offset
        return first.lineno, first.col_offset

    @property
    def end(self) -> tuple[int, int]:
        """The line and the column in bytes after the piece."""
        last = self.piece if isinstance(self.piece, ast.expr) else self.piece[-1]
        assert last.end_lineno is not None
        assert last.end_col_offset is not None
        return last.end_lineno, last.end_col_offset


def parsed(source: str) -> Sequence[Item]:
    """Return the items of a piece of source, indented or not; raises SyntaxError."""
    text = dedent(source).strip()
    if not re.match(r"except\b", text):
        return ast.parse(text).body
    whole = ast.parse(f"try:\n    pass\n{text}").body
    assert isinstance(whole[0], ast.Try)
    return whole[0].handlers


def shape(node: object) -> str:
    """Return a syntax tree as text, without positions, the same in every release of Python."""
    if isinstance(node, ast.AST):
        fields = (
            f"{name}={shape(value)}"
            for name, value in ast.iter_fields(node)
            if value is not None and value != [] and name not in _IGNORED_FIELDS
        )
        constant = f"{node.value!r}" if isinstance(node, ast.Constant) else ",".join(fields)
        return f"{type(node).__name__}({constant})"
    if isinstance(node, list):
        return f"[{','.join(map(shape, cast('list[object]', node)))}]"
    return repr(node)


def matches(scope: ast.AST, wanted: Sequence[Item]) -> Iterator[Match]:
    """Yield where a piece stands in a function or class, as items or as an expression."""
    shapes = [shape(statement) for statement in wanted]
    for block in _blocks(scope):
        found = [shape(statement) for statement in block]
        for index in range(len(block) - len(shapes) + 1):
            if found[index : index + len(shapes)] == shapes:
                piece = block[index : index + len(shapes)]
                yield Match(piece, is_whole_block=len(piece) == len(block))
    if len(wanted) == 1 and isinstance(wanted[0], ast.Expr):
        target = shape(wanted[0].value)
        kind = type(wanted[0].value)
        for expression in _expressions(scope):
            if isinstance(expression, kind) and shape(expression) == target:
                yield Match(expression)


def _blocks(scope: ast.AST) -> Iterator[list[Item]]:
    for node in ast.walk(scope):
        for _, value in ast.iter_fields(node):
            if (
                isinstance(value, list)
                and value
                and isinstance(value[0], ast.stmt | ast.ExceptHandler)
            ):
                yield value


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that are part of something, but what is inside of f-strings."""
    if isinstance(node, ast.JoinedStr):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and not isinstance(node, ast.Expr):
            yield child
        yield from _expressions(child)


def replaced(text: str, changes: Sequence[tuple[Match, Sequence[Item]]]) -> str:
    """Return a file's text with other statements or expressions in place of pieces of it."""
    lines = text.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    content = text.encode()
    for match, new in sorted(changes, key=lambda change: change[0].start, reverse=True):
        (first, left), (last, right) = match.start, match.end
        written = _written(match, new).encode()
        begin, end = starts[first - 1] + left, starts[last - 1] + right
        content = content[:begin] + written + content[end:]
    return content.decode()


def _written(match: Match, new: Sequence[Item]) -> str:
    if isinstance(match.piece, ast.expr):
        return f"({ast.unparse(new[0])})"
    if not new:
        return "pass" if match.is_whole_block else ""
    source = "\n".join(ast.unparse(item).strip() for item in new)
    return indent(source, " " * match.start[1]).lstrip(" ")
