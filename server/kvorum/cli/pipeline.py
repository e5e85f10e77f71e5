"""``kvorum pipeline``: a metadata log's records, topics and partitions as Parquet tables."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from kvorum.spark.current_files import current_files
from kvorum.spark.errors import SparkSliceError
from kvorum.spark.files.find import METADATA_SEARCH, find_files

NAME: Final = "pipeline"
HELP: Final = "write a metadata log's records, topics and partitions to Parquet with Spark"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--input",
        required=True,
        metavar="DIR",
        help="a metadata log directory, its __cluster_metadata-0, or one segment or snapshot",
    )
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="where records/, topics/, partitions/ go"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace tables that are there already"
    )
    parser.add_argument(
        "--master", default="local[*]", help="Spark's master (default: all cores of this machine)"
    )
    parser.add_argument(
        "--driver-host",
        metavar="HOST",
        help="how executors on other machines reach this one (default: Spark finds out; with a "
        "local master nothing outside this machine reaches it)",
    )
    parser.add_argument(
        "--driver-memory", default="1g", metavar="SIZE", help="the driver's heap (default: 1g)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the job; return 0 if the tables are written, else print an error and return 1."""
    try:
        # A wrong path is reported before Spark starts, which takes seconds.
        current_files(find_files([args.input], METADATA_SEARCH).files)
    except SparkSliceError as error:
        return _fail(str(error))
    try:
        from pyspark.errors import PySparkException  # noqa: PLC0415 - optional and slow to import

        from kvorum.spark.pipeline import run_pipeline  # noqa: PLC0415 - imports pyspark
        from kvorum.spark.session import build_session  # noqa: PLC0415 - imports pyspark
    except ImportError as error:
        return _fail(f"{error}: install kvorum with its extra 'spark', and Java (or 'java')")
    try:
        spark = build_session(
            master=args.master, driver_memory=args.driver_memory, driver_host=args.driver_host
        )
    except PySparkException as error:
        return _fail(f"Spark does not start: {_first_line(str(error))}")
    try:
        report = run_pipeline(
            spark, input_path=args.input, output_path=args.output, overwrite=args.overwrite
        )
    except PySparkException as error:
        return _fail(_cause(str(error)))
    finally:
        spark.stop()
    print(
        f"{report.record_count} records of {report.file_count} files, {report.topic_count} topics, "
        f"{report.partition_count} partitions written to {Path(args.output)}"
    )
    return 0


def _fail(reason: str) -> int:
    print(f"kvorum pipeline: {reason}", file=sys.stderr)
    return 1


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _cause(text: str) -> str:
    """Return the line of a Spark error that names our own error; the rest is the stack trace."""
    for line in text.splitlines():
        _, found, reason = line.partition("Error: ")
        if found and line.startswith("kvorum."):
            return reason
    return _first_line(text)
