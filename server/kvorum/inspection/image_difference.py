"""The differences of two images, path by path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kvorum.inspection.image_entries import image_entries
from kvorum.inspection.metadata_log.folded_log import FoldedLog


class Change(NamedTuple):
    """A path whose text differs; None where there is no such path."""

    path: str
    before: str | None
    after: str | None


def image_changes(before: FoldedLog, after: FoldedLog) -> Iterator[Change]:
    """Yield the paths that differ: those of the first image in its order, then the others."""
    old = dict(image_entries(before))
    new = dict(image_entries(after))
    for path, value in old.items():
        if new.get(path) != value:
            yield Change(path, value, new.get(path))
    for path, value in new.items():
        if path not in old:
            yield Change(path, None, value)
