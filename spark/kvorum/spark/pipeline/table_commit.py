"""The changes of one table by a run, as formats with a log or metadata of their own take them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from kvorum.spark.pipeline.layout import NO_DAY
from kvorum.spark.pipeline.output_files import OutputFiles


class AddedFile(NamedTuple):
    """A file of a table; `path` is relative to the table's directory."""

    path: str
    size_bytes: int
    row_count: int


class AddCommit(Protocol):
    """The part that adds a run's commit to a table."""

    def __call__(
        self,
        files: OutputFiles,
        table_root: str,
        *,
        run: int,
        added: Sequence[AddedFile],
        removed: Iterable[str],
        now_ms: int,
    ) -> None:
        """Make `added` part of a table and `removed` none, unless the run has done so before.

        The added files are in their places; the paths of `removed` are relative to `table_root`.
        Raises `PipelineError` where another program writes to the table at the same moment.
        """
        ...


def partition_values(path: str) -> dict[str, str | None]:
    """Return the columns that the directories of a path name, as Hive names them."""
    values: dict[str, str | None] = {}
    for folder in posixpath.dirname(path).split("/"):
        name, _, value = folder.partition("=")
        values[name] = None if value == NO_DAY else unquote(value)
    return values
