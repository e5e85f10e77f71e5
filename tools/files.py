"""`python -m tools.files [ROOM or PATH ...]`: list modules by the first lines of docstrings.

A room is named as in docs/ARCHITECTURE.md, a path from the project's root or from `kvorum` on:
`raft` and `kvorum.raft`, `server/kvorum/raft/roles` and `raft/roles` are understood. Without a name
everything is listed, room by room. Generated modules are left out.
"""

import argparse
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tools.unused_code import GENERATED_MARK, ROOT, room_of

FOLDERS: Final = ("benchmarks", "codegen", "server", "spark", "storage", "tests", "tools", "wire")
FIRST_LINE: Final = re.compile(r'(?:#.*\n)*r?"""(.*?)(?:"""|\n)')


def modules(root: Path = ROOT) -> list[tuple[str, str]]:
    """Return path and first line of each hand-written module, ordered by room and path."""
    texts = {
        path.relative_to(root).as_posix(): path.read_text("utf-8")
        for folder in FOLDERS
        for path in (root / folder).rglob("*.py")
    }
    found = [(path, text) for path, text in texts.items() if not text.startswith(GENERATED_MARK)]
    return sorted(
        ((path, first_line(text)) for path, text in found), key=lambda one: (room_of(one[0]), one)
    )


def first_line(text: str) -> str:
    """Return the first line of a module's docstring, "" if it has none."""
    found = FIRST_LINE.match(text)
    return found[1] if found else ""


def is_meant(path: str, name: str) -> bool:
    """Return whether a name is that of a module, or of a room or folder that it is in."""
    wanted = name.removesuffix(".py").rstrip("/").replace(".", "/")
    return any(f"{start}/".startswith(f"{wanted}/") for start in names_of(path))


def names_of(path: str) -> Iterator[str]:
    """Yield a module's path from the root, from `kvorum` on, and from the room on."""
    whole = path.removesuffix(".py")
    yield whole
    _, _, inner = whole.partition("/")
    if inner.startswith("kvorum/"):
        yield inner
        yield inner.removeprefix("kvorum/")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is asked for; 1 if a name means no module."""
    parser = argparse.ArgumentParser(prog="python -m tools.files")
    parser.add_argument("names", nargs="*", metavar="ROOM or PATH", help="what to list")
    names = parser.parse_args(arguments).names
    known = modules()
    unknown = [name for name in names if not any(is_meant(path, name) for path, _ in known)]
    if unknown:
        print(*(f"files: no module in {name}" for name in unknown), sep="\n", file=sys.stderr)
        return 1
    listed = [one for one in known if not names or any(is_meant(one[0], name) for name in names)]
    width = max(len(path) for path, _ in listed)
    print(*(f"{path:{width}}  {line}" for path, line in listed), sep="\n")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    sys.exit(main())
