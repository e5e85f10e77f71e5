"""The completion of a line's words: names of commands, and paths in the tree."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kvorum.inspection.shell.commands import COMMANDS, Surroundings
from kvorum.inspection.shell.node import Directory, in_java_order
from kvorum.inspection.shell.paths import path_components

_WITH_PATHS: Final = ("cat", "find", "ls", "tree")
_WITH_ONE_PATH: Final = "cd"
_WITH_ONE_COMMAND: Final = "man"


class Candidate(NamedTuple):
    """A completion of the last word; a directory's path is not complete: it goes on."""

    text: str
    is_complete: bool


def complete(words: Sequence[str], around: Surroundings) -> Iterator[Candidate]:
    """Yield what the last of `words`, which may be empty, may become."""
    first, *others = words
    if not others:
        yield from _command_names(first)
    elif first in _WITH_PATHS or (first == _WITH_ONE_PATH and len(others) == 1):
        yield from _paths(others[-1], around)
    elif first == _WITH_ONE_COMMAND and len(others) == 1:
        yield from _command_names(others[0])


def _command_names(beginning: str) -> Iterator[Candidate]:
    return (Candidate(name, True) for name in COMMANDS if name.startswith(beginning))


def _paths(beginning: str, around: Surroundings) -> Iterator[Candidate]:
    """Yield the paths with this beginning; after a slash, what is in that directory."""
    components = path_components(beginning, around.working_directory)
    prefix = beginning[: beginning.rfind("/") + 1]
    start = "" if beginning.endswith("/") or not components else components.pop()
    directory = around.root
    for component in components:
        child = directory.child(component)
        if not isinstance(child, Directory):
            return
        directory = child
    for name in sorted(set(directory.names()), key=in_java_order):
        if name.startswith(start):
            is_directory = isinstance(directory.child(name), Directory)
            ending = "/" if is_directory else ""
            yield Candidate(f"{prefix}{name}{ending}", not is_directory)
