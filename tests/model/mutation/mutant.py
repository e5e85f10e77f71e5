"""One bug from the history of a quorum, as a small change that puts it into this project."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from hashlib import sha256
from pathlib import Path
from textwrap import dedent, indent
from typing import TypeAlias, cast

from tests.support.source_tree import ROOT, SOURCE_ROOTS

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
    """Yield where a piece stands in a function or class, as items or as an expression.

    Formatting, comments, line wraps and superfluous parentheses make no difference.
    """
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


_Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_DEFINED = re.compile(r"\b(?:def|class) (\w+)")


@dataclass(frozen=True, slots=True)
class Place:
    """A function, method or class of that name, and the file that holds it."""

    name: str
    file: str
    node: _Definition

    @property
    def module(self) -> str:
        _, _, inner = self.file.removesuffix(".py").partition("/kvorum/")
        return inner.removesuffix("/__init__").replace("/", ".")

    def is_in(self, room: str) -> bool:
        """Return whether the module is a package (`raft`, `node.raft`), or in it."""
        return not room or f"{self.module}.".startswith(f"{room}.")

    def __str__(self) -> str:
        return f"{self.name} ({self.module})"


class Sources:
    """The source roots in a folder, read once; a file is parsed when something in it is wanted."""

    def __init__(self, root: Path = ROOT) -> None:
        self.texts = {
            path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
            for name in SOURCE_ROOTS
            for path in sorted((root / name).rglob("*.py"))
        }
        self._defined = {file: set(_DEFINED.findall(text)) for file, text in self.texts.items()}
        self._places: dict[str, list[Place]] = {}

    def named(self, name: str) -> list[Place]:
        """Return the functions and classes of a qualified name, such as `Leader.tick`."""
        parts = set(name.split("."))
        return [
            place
            for file, defined in self._defined.items()
            if parts <= defined
            for place in self._places_in(file)
            if place.name == name
        ]

    def holding(self, wanted: Sequence[Item]) -> list[Place]:
        """Return the innermost functions and classes in which a piece of source stands."""
        nodes = [node for item in wanted for node in ast.walk(item)]
        words = {node.id for node in nodes if isinstance(node, ast.Name)}
        words |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        found = [
            place
            for file, text in self.texts.items()
            if all(word in text for word in words)
            for place in self._places_in(file)
            if any(matches(place.node, wanted))
        ]
        outer = {(place.file, place.name.rpartition(".")[0]) for place in found}
        return [place for place in found if (place.file, place.name) not in outer]

    def _places_in(self, file: str) -> list[Place]:
        if file not in self._places:
            definitions = _definitions(ast.parse(self.texts[file], file))
            self._places[file] = [Place(name, file, node) for name, node in definitions]
        return self._places[file]


def _definitions(node: ast.AST, above: str = "") -> Iterator[tuple[str, _Definition]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{above}{child.name}"
            yield name, child
            yield from _definitions(child, f"{name}.")
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _definitions(child, above)


class Kind(Enum):
    """The promise that a bug endangers: safety, progress, or that it is Kafka."""

    SAFETY = "safety"
    LIVENESS = "liveness"
    CONFORMITY = "conformity"


class EditError(Exception):
    """The text that an edit replaces is not there exactly once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A piece of a function, method or class, and what takes its place.

    `within` is the qualified name of the function, wherever it is (`initial_role`, `Leader.tick`).
    Where the same stands in several functions of that name, `room` is the package of the wanted
    one below `kvorum` (`raft`, `node.raft`). `old` is a statement, several in a row, an `except`
    clause or an expression; `new` is of the same sort; without it the statements are deleted.
    Both are compared and written as syntax trees, so their formatting is free.
    """

    within: str
    old: str
    new: str = ""
    room: str = ""

    def found_in(self, sources: Sources) -> tuple[Place, Match]:
        """Return where the old piece is; raises EditError."""
        old = self._parsed(self.old)
        if not old:
            raise self._error("is nothing")
        named = [place for place in sources.named(self.within) if place.is_in(self.room)]
        if not named:
            raise self._error(f"has no function or class of that name{self._elsewhere(sources)}")
        found = [(place, match) for place in named for match in matches(place.node, old)]
        if not found:
            searched = ", ".join(map(str, named))
            raise self._error(f"is not in {searched}{self._elsewhere(sources)}")
        if len(found) > 1:
            several = ", ".join(f"{place} line {match.start[0]}" for place, match in found)
            raise self._error(f"is there {len(found)} times, not once: {several}")
        place, match = found[0]
        if isinstance(match.piece, ast.expr) and not self._is_expression(self.new):
            raise self._error("is an expression, but what takes its place is none")
        return place, match

    def replacement(self) -> Sequence[Item]:
        """Return what takes the old piece's place; raises EditError."""
        return self._parsed(self.new)

    @property
    def identity(self) -> str:
        """The identity of this edit, without formatting and place."""
        old, new = self._parsed(self.old), self._parsed(self.new)
        return f"{self.within}\0{shape(old)}\0{shape(new)}"

    def renamed(self, names: Mapping[str, str]) -> Edit:
        """Return the edit with names replaced wherever they stand as whole words."""
        if not names:
            return self
        words = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")

        def with_names(text: str) -> str:
            return words.sub(lambda found: names[found[0]], text)

        return replace(
            self, within=with_names(self.within), old=with_names(self.old), new=with_names(self.new)
        )

    def _is_expression(self, source: str) -> bool:
        statements = self._parsed(source)
        return len(statements) == 1 and isinstance(statements[0], ast.Expr)

    def _parsed(self, source: str) -> Sequence[Item]:
        try:
            return parsed(source)
        except SyntaxError as error:
            raise self._error(f"is not Python, or what takes its place is not: {error}") from error

    def _elsewhere(self, sources: Sources) -> str:
        candidates = ", ".join(map(str, sources.holding(self._parsed(self.old))))
        return f"; the same stands in {candidates}" if candidates else ""

    def _error(self, problem: str) -> EditError:
        room = f" in {self.room}" if self.room else ""
        return EditError(f"{self.within}{room}: {self.old.strip()!r} {problem}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A bug: where it happened, what went wrong, which property that breaks, and its edits."""

    id: str
    cause: str
    breaks: str
    kind: Kind
    edits: tuple[Edit, ...]

    @property
    def digest(self) -> str:
        """The digest that decides whether a result in the ledger is about these very edits."""
        return sha256("\0".join(edit.identity for edit in self.edits).encode()).hexdigest()[:12]

    def renamed(self, names: Mapping[str, str]) -> Mutant:
        return replace(self, edits=tuple(edit.renamed(names) for edit in self.edits))

    def places(self, sources: Sources) -> tuple[Place, ...]:
        """Return the functions and classes that the edits are in; raises EditError."""
        return tuple(edit.found_in(sources)[0] for edit in self.edits)

    def mutated(self, sources: Sources) -> dict[str, str]:
        """Return the new text of every file that is changed; raises EditError."""
        changes: dict[str, list[tuple[Match, Sequence[Item]]]] = {}
        for edit in self.edits:
            place, match = edit.found_in(sources)
            changes.setdefault(place.file, []).append((match, edit.replacement()))
        return {file: replaced(sources.texts[file], made) for file, made in changes.items()}


def _bug(
    kind: Kind,
    *,
    id: str,  # noqa: A002 - the name of the field
    cause: str,
    breaks: str,
    within: str,
    old: str,
    new: str = "",
    room: str = "",
) -> Mutant:
    """Return a bug that a single edit puts in, as most are."""
    edit = Edit(within=within, old=old, new=new, room=room)
    return Mutant(id=id, cause=cause, breaks=breaks, kind=kind, edits=(edit,))


safety_bug = partial(_bug, Kind.SAFETY)
liveness_bug = partial(_bug, Kind.LIVENESS)
conformity_bug = partial(_bug, Kind.CONFORMITY)
