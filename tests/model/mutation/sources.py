"""The project's functions and classes by their names, in whichever file they are."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.model.mutation.syntax import Item, matches
from tests.support.source_tree import ROOT, SOURCE_ROOTS

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
        """The module's name below `kvorum`."""
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
