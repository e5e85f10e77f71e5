"""The ranges of segments that the options of a query name."""

from __future__ import annotations

from kvorum.spark.files.find import find_files
from kvorum.spark.files.log_file import FileKind
from kvorum.spark.files.ranges import FileRange, plan_ranges
from kvorum.spark.log_source.options import SourceOptions


def planned_segments(options: SourceOptions) -> list[FileRange]:
    """Return the ranges to read, in the order of the files.

    Snapshots and bootstrap records are no segments of a topic. Raises `LogFilesError`.
    """
    files = options.files
    found = find_files(files.paths, files.search)
    segments = tuple(file for file in found.files if file.kind is FileKind.SEGMENT)
    return plan_ranges(
        found._replace(files=segments),
        range_bytes=files.range_bytes,
        has_gaps=options.has_gaps,
        file_system_options=files.search.file_system_options,
    )
