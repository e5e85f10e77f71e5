"""``kvorum pipeline``: the metadata logs of a fleet as tables, brought up to date by each run."""

from __future__ import annotations

import argparse
import re
import sys
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Final

from kvorum.cli.missing_package import missing_package_text
from kvorum.cli.shared_arguments import add_fs_option
from kvorum.log_files.errors import LogFilesError
from kvorum.spark.errors import SparkSliceError

if TYPE_CHECKING:
    from kvorum.spark.pipeline.job import SparkTasks
    from kvorum.spark.pipeline.request import PipelineReport, PipelineRequest

NAME: Final = "pipeline"
_HEAP_SIZE: Final = re.compile(r"[1-9][0-9]*[kmgt]", re.IGNORECASE)
_CAUSE: Final = "Caused by: "
HELP: Final = "bring tables of any number of clusters' metadata logs up to date with Spark"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--input",
        required=True,
        action="append",
        metavar="PATH",
        help="a directory that is searched at every depth, a file, or a glob pattern, local or of "
        "fsspec (s3://...); may be given several times",
    )
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="the directory of the tables"
    )
    parser.add_argument(
        "--format",
        choices=("parquet", "delta", "iceberg"),
        default="parquet",
        help="what the tables are: directories of Parquet files, or the same with Delta's log or "
        "Iceberg's metadata (default: parquet)",
    )
    parser.add_argument(
        "--rebuild",
        action="store_true",
        help="replace all rows of the input's clusters instead of adding what is new",
    )
    parser.add_argument(
        "--json", action="store_true", help="add the column json to the table of records"
    )
    parser.add_argument(
        "--errors",
        action="store_true",
        help="write damage into the table errors, and go on (default: the run ends)",
    )
    parser.add_argument(
        "--cluster-id", metavar="ID", help="the cluster of files without a meta.properties file"
    )
    add_fs_option(parser)
    parser.add_argument(
        "--master",
        help="Spark's master (default: that of spark-submit, or all cores of this machine)",
    )
    parser.add_argument(
        "--driver-host",
        metavar="HOST",
        help="how executors on other machines reach this one (default: Spark finds out; with a "
        "local master nothing outside this machine reaches it)",
    )
    parser.add_argument(
        "--driver-memory",
        default="1g",
        type=_heap_size,
        metavar="SIZE",
        help="the driver's heap, such as 512m or 2g (default: 1g)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the job; return 0 if the tables are up to date, else print an error and return 1."""
    try:
        from pyspark.errors import PySparkException  # noqa: PLC0415 - optional and slow to import

        from kvorum.spark.java_error import JavaError  # noqa: PLC0415 - imports py4j
        from kvorum.spark.pipeline.progress import Console  # noqa: PLC0415 - imports pyarrow
        from kvorum.spark.pipeline.request import PipelineRequest, TableFormat  # noqa: PLC0415 - the same
        from kvorum.spark.pipeline.run import run_pipeline  # noqa: PLC0415 - the same
    except ImportError as error:
        problem = missing_package_text("the pipeline", error, extra="spark")
        return _fail(f"{problem}; Java comes with 'java'")
    request = PipelineRequest(
        inputs=tuple(args.input),
        output=args.output,
        with_json=args.json,
        keeps_errors=args.errors,
        is_rebuild=args.rebuild,
        table_format=TableFormat(args.format),
        cluster_id=args.cluster_id,
        file_system_options=dict(args.fs),
    )
    try:
        with (
            closing(Console(sys.stderr, is_terminal=sys.stderr.isatty())) as console,
            ExitStack() as ended,
        ):
            report = run_pipeline(request, partial(_start_spark, args, ended), console)
    except (SparkSliceError, LogFilesError) as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename or request.output}: {error.strerror or error}")
    except PySparkException as error:
        first_line = str(error).strip().partition("\n")[0]
        return _fail(f"Spark: {first_line}")
    except JavaError as error:
        return _fail(f"Spark: {root_cause(str(error))}")
    _print_summary(report, request)
    return 0


def _start_spark(args: argparse.Namespace, ended: ExitStack) -> SparkTasks:
    """Start a session, which is stopped when `ended` closes; return what runs tasks in it."""
    from kvorum.spark.pipeline.job import SparkTasks  # noqa: PLC0415 - imports pyspark
    from kvorum.spark.session import build_session  # noqa: PLC0415 - the same

    session = build_session(
        master=args.master,
        driver_memory=args.driver_memory,
        driver_host=args.driver_host,
        is_without_rows=True,
    )
    ended.callback(session.stop)
    return SparkTasks(session)


def _print_summary(report: PipelineReport, request: PipelineRequest) -> None:
    for cluster_id, what in report.rebuilt.items():
        print(f"{cluster_id}: {what}")
    if not report.changed_count:
        print(f"nothing new in {_counted(report.cluster_count, 'cluster')}: {request.output}")
        return
    if report.error_count:
        print(f"{_counted(report.error_count, 'damaged place')}: see the table errors")
    rows = sum(report.row_counts.values())
    rate = round(report.record_count / report.duration_s)
    print(
        f"run {report.number}: {_counted(report.record_count, 'record')} of "
        f"{_counted(report.changed_count, 'cluster')} "
        f"({report.cluster_count - report.changed_count} without news), "
        f"{_counted(rows, 'row')} written to {request.output} in {report.duration_s:.1f} s "
        f"({rate:,} records a second)"
    )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def root_cause(text: str) -> str:
    """Return what an exception of Java's was caused by in the end, in one line.

    `text` is its stack trace, of some hundred lines.
    """
    lines = [line.strip().removeprefix(": ") for line in text.strip().splitlines()]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    # The first line is py4j's own: An error occurred while calling ...
    return [*lines[:2], *causes][-1]


def _heap_size(text: str) -> str:
    if not _HEAP_SIZE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 512m or 2g")
    return text


def _fail(reason: str) -> int:
    print(f"kvorum pipeline: {reason}", file=sys.stderr)
    return 1
