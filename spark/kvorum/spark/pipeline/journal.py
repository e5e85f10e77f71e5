"""The journal of a run: written at once, it is the commit; what it lists is then done.

1. All files of a run are staged; nothing that a reader looks at has changed.
2. ``_commits/N.json`` is written in one step. From here on the run counts.
3. New files are moved to their places.
4. Tables in Delta's or Iceberg's format each get a commit to their log or metadata.
5. Replaced files are removed.
6. ``_commits/N.done`` is written, and the staged files' directory is removed.

A run that was killed before step 2 has left nothing but staged files, which the next one drops. One
killed later is completed by the next: each move and removal has the same outcome however often it
is tried.
"""

import json
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Final

from kvorum.spark.errors import DamagedOutputError, PipelineError
from kvorum.spark.pipeline import delta_log
from kvorum.spark.pipeline.layout import COMMITS, STAGING, STATE, AddCommit, AddedFile, TableChange
from kvorum.spark.pipeline.output_files import OutputFiles
from kvorum.spark.pipeline.request import TableFormat

JOURNAL_SUFFIX: Final = ".json"
DONE_SUFFIX: Final = ".done"


@dataclass(frozen=True, slots=True)
class Journal:
    """The file that makes a run visible; all paths are relative to the output.

    `moves` are pairs of a staged file and its place, `rows` the new rows of each table. `sizes` has
    the size in bytes and the number of rows of each new file of a table, none where the format is
    that of nothing but files.
    """

    number: int
    staging: str
    moves: list[list[str]]
    removes: list[str]
    rows: dict[str, int]
    table_format: str
    sizes: dict[str, list[int]]


def commit(files: OutputFiles, root: str, journal: Journal) -> None:
    """Make a run's files visible; it counts from the moment that the journal is there."""
    data = json.dumps(asdict(journal), indent=1, sort_keys=True).encode()
    files.write(_path(root, journal.number, JOURNAL_SUFFIX), data)
    complete(files, root, journal)


def complete(files: OutputFiles, root: str, journal: Journal) -> None:
    """Do what a committed journal lists, as far as it is not done."""
    for source, target in journal.moves:
        if files.exists(f"{root}/{source}"):
            files.move(f"{root}/{source}", f"{root}/{target}")
        elif not files.exists(f"{root}/{target}"):
            raise DamagedOutputError(
                f"{root}/{target}: run {journal.number} is committed, but this file of it is gone; "
                "write the output anew with --rebuild in an empty directory"
            )
    add_commit = commit_of(TableFormat(journal.table_format))
    if add_commit is not None:
        _commit_tables(files, root, journal, add_commit)
    for path in journal.removes:
        files.remove(f"{root}/{path}")
    files.write(_path(root, journal.number, DONE_SUFFIX), b"")
    files.remove_tree(f"{root}/{journal.staging}")


def _commit_tables(files: OutputFiles, root: str, journal: Journal, add_commit: AddCommit) -> None:
    """Add a commit to each table that a run has changed."""
    added: dict[str, list[AddedFile]] = defaultdict(list)
    removed: dict[str, list[str]] = defaultdict(list)
    for target, (size_bytes, row_count) in journal.sizes.items():
        table, _, path = target.partition("/")
        added[table].append(AddedFile(path, size_bytes, row_count))
    for target in journal.removes:
        table, _, path = target.partition("/")
        if table != STATE:
            removed[table].append(path)
    for table in sorted({*added, *removed}):
        add_commit(
            files,
            f"{root}/{table}",
            TableChange(journal.number, added[table], removed[table], round(time.time() * 1000)),
        )


def recover(files: OutputFiles, root: str) -> tuple[int, list[int]]:
    """Complete committed runs, drop what others staged.

    Returns the number of the next run, and those of the runs that were completed. Only the holder
    of the output's lock may do this.
    """
    names = set(files.names_in(f"{root}/{COMMITS}"))
    stems = [name.removesuffix(JOURNAL_SUFFIX) for name in names if name.endswith(JOURNAL_SUFFIX)]
    numbers = sorted(int(stem) for stem in stems if stem.isdecimal())
    unfinished = [number for number in numbers if f"{number}{DONE_SUFFIX}" not in names]
    for number in unfinished:
        complete(files, root, _read(files, root, number))
    files.remove_tree(f"{root}/{STAGING}")
    return max(numbers, default=0) + 1, unfinished


def _read(files: OutputFiles, root: str, number: int) -> Journal:
    path = _path(root, number, JOURNAL_SUFFIX)
    try:
        return Journal(**json.loads(files.read(path) or b""))
    except (ValueError, TypeError) as error:
        raise DamagedOutputError(f"{path}: not a journal: {error}") from error


def _path(root: str, number: int, suffix: str) -> str:
    return f"{root}/{COMMITS}/{number}{suffix}"


def commit_of(table_format: TableFormat) -> AddCommit | None:
    """Return what adds a run's commit to a table; None where the files are all there is.

    Raises `PipelineError` where a package that the format needs is not installed.
    """
    if table_format is TableFormat.DELTA:
        return delta_log.add_commit
    if table_format is TableFormat.PARQUET:
        return None
    try:
        from kvorum.spark.pipeline import iceberg_commit  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise PipelineError(
            f"--format {table_format} needs the package pyiceberg: install kvorum with its extra "
            "'iceberg'"
        ) from error
    return iceberg_commit.add_commit
