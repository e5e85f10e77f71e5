"""Paths of the shell's tree, with wildcards too: ``*``, ``?``, ``{one,other}`` (GlobVisitor)."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kvorum.inspection.shell.image_tree import DanglingNameError, Directory, Node

# The characters that a dot of Java's regular expressions does not match.
_ANY_CHARACTER: Final = "[^\n\r\x85\u2028\u2029]"


def path_components(path: str, working_directory: str) -> list[str]:
    """Return the components of a path from the root on, with ``.`` and ``..`` resolved.

    Empty components are left out, and ``..`` at the root is the root.
    """
    full = path if path.startswith("/") else f"{working_directory}/{path}"
    components: list[str] = []
    for component in full.split("/"):
        if component == "..":
            del components[-1:]
        elif component not in ("", "."):
            components.append(component)
    return components


def effective_paths(paths: Sequence[str]) -> list[str]:
    """Return the paths that are not empty; the working directory where none is left."""
    return [path for path in paths if path] or ["."]


class Found(NamedTuple):
    """A node, and where it is: the components of its path."""

    path: tuple[str, ...]
    node: Node

    @property
    def name(self) -> str:
        """The last component of the path."""
        return self.path[-1] if self.path else "/"

    @property
    def absolute_path(self) -> str:
        """The path from the root on."""
        return "/" + "/".join(self.path)


def find_nodes(root: Directory, glob: str, working_directory: str) -> Iterator[Found]:
    """Yield the nodes that a path with wildcards leads to, in the order of their names.

    A directory that lists a name twice yields its node twice. Raises `DanglingNameError` where a
    wildcard matches a name without a node.
    """
    return _matching(root, path_components(glob, working_directory), ())


def _matching(node: Node, components: Sequence[str], path: tuple[str, ...]) -> Iterator[Found]:
    if not components:
        yield Found(path, node)
        return
    if isinstance(node, str):
        return
    component, *rest = components
    pattern = glob_pattern(component)
    if pattern is None:
        child = node.child(component)
        if child is not None:
            yield from _matching(child, rest, (*path, component))
        return
    for name in node.sorted_names():
        if pattern.fullmatch(name) is None:
            continue
        child = node.child(name)
        if child is None:
            raise DanglingNameError(name, node.kind)
        yield from _matching(child, rest, (*path, name))


def glob_pattern(component: str) -> re.Pattern[str] | None:
    """Return the pattern of a component; None where it has no wildcard and matches only itself.

    A component whose group does not end, or is in another one, matches only itself too. A
    backslash before a wildcard takes its meaning away.
    """
    if re.fullmatch(r"(?:\\.|[^*?{\\])*\\?", component, re.DOTALL):
        return None
    parts: list[str] = []
    is_in_group = False
    characters = iter(component)
    for character in characters:
        if character == "{" and is_in_group:
            return None
        if character == "\\":
            # At the end it escapes the anchor that Kafka's pattern ends with.
            parts.append(re.escape(next(characters, "$")))
            continue
        parts.append(_pattern_part(character, is_in_group=is_in_group))
        is_in_group = character == "{" or (is_in_group and character != "}")
    return None if is_in_group else re.compile("".join(parts))


def _pattern_part(character: str, *, is_in_group: bool) -> str:
    match character:
        case "*":
            return f"{_ANY_CHARACTER}*"
        case "?":
            return _ANY_CHARACTER
        case "{":
            return "(?:(?:"
        case "," if is_in_group:
            return ")|(?:"
        case "}" if is_in_group:
            return "))"
        case _:
            return re.escape(character)
