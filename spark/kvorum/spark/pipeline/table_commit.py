"""The changes of one table by a run, as formats with a log or metadata of their own take them."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote

from kvorum.spark.pipeline.layout import NO_DAY
from kvorum.spark.pipeline.output_files import OutputFiles


class AddedFile(NamedTuple):
    """A file of a table; `path` is relative to the table's directory."""

    path: str
    size_bytes: int
    row_count: int


class TableChange(NamedTuple):
    """The files that a run adds to a table, which are in their places, and those that it removes.

    All paths are relative to the table's directory.
    """

    run: int
    added: Sequence[AddedFile]
    removed: Sequence[str]
    now_ms: int


AddCommit: TypeAlias = Callable[[OutputFiles, str, TableChange], None]
"""Adds a run's commit to a table, unless the run has done so before; the text is its directory.

Raises `PipelineError` where another program writes to the table at the same moment.
"""


def partition_values(path: str) -> dict[str, str | None]:
    """Return the columns that the directories of a path name, as Hive names them."""
    values: dict[str, str | None] = {}
    for folder in posixpath.dirname(path).split("/"):
        name, _, value = folder.partition("=")
        values[name] = None if value == NO_DAY else unquote(value)
    return values
