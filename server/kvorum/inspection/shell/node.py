"""The nodes of the shell's tree: directories, whose content is computed on access, and files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

_INDENTATION: Final = "  "


def in_java_order(name: str) -> bytes:
    """Return the key that sorts names as Java does, by UTF-16 code units."""
    return name.encode("utf-16-be", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory whose content is computed on access.

    `names` may contain a name twice; `child` returns None for a name without a node, and may know
    names that `names` does not list. `kind` is how Kafka's messages name the directory.
    """

    names: Callable[[], Collection[str]]
    child: Callable[[str], Node | None]
    kind: str = ""

    def sorted_names(self) -> list[str]:
        """Return the names in the order of the shell."""
        return sorted(self.names(), key=in_java_order)


Node: TypeAlias = Directory | str
"""A directory, or the text in a file."""


class DanglingNameError(Exception):
    """A directory lists a name for which it has no node; `place` is its path or its kind."""

    def __init__(self, name: str, place: str) -> None:
        super().__init__(f"Expected {name} to be a valid child of {place}, but it was not.")


def tree_lines(node: Node, depth: int = 0) -> Iterator[str]:
    """Yield the output of the shell's ``tree`` for a directory, and of its ``cat`` for a file."""
    if isinstance(node, str):
        yield f"{_INDENTATION * depth}{node}"
        return
    for name in node.sorted_names():
        yield f"{_INDENTATION * depth}{name}:"
        child = node.child(name)
        if child is not None:
            yield from tree_lines(child, depth + 1)


def find_lines(node: Node, path: str) -> Iterator[str]:
    """Yield the output of the shell's ``find``; `DanglingNameError` for a name without a node."""
    yield path
    if isinstance(node, str):
        return
    for name in node.sorted_names():
        child = node.child(name)
        if child is None:
            raise DanglingNameError(name, path)
        yield from find_lines(child, f"{path}{name}" if path == "/" else f"{path}/{name}")
