"""Paths of the shell's tree: components, without dots."""

from __future__ import annotations

from collections.abc import Sequence


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
