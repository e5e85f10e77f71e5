"""``kvorum report``: pages of HTML from the tables that ``kvorum pipeline`` writes."""

import argparse
import sys
from pathlib import Path
from typing import Final

from kvorum.cli import UsageError
from kvorum.cli.missing_package import missing_package_text
from kvorum.cli.shared_arguments import add_fs_option, time_ms

NAME: Final = "report"
HELP: Final = "make pages of HTML about clusters from the tables that kvorum pipeline writes"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--tables",
        required=True,
        metavar="DIR",
        help="the tables of kvorum pipeline, on this machine or of fsspec (s3://...)",
    )
    add_fs_option(parser)
    parser.add_argument(
        "--output",
        required=True,
        type=_local_path,
        metavar="PATH",
        help="FILE.html for the page of one cluster, else a directory for index.html and a page "
        "for each cluster; pages that are there are replaced",
    )
    parser.add_argument("--cluster", metavar="ID", help="one cluster (default: all)")
    parser.add_argument(
        "--since",
        type=time_ms,
        metavar="TIME",
        help="begin of the time that the pages cover, in ISO 8601, in UTC unless it has an offset: "
        "2026-11-17 or 2026-11-17T14:30 (default: all that the tables have)",
    )
    parser.add_argument(
        "--until", type=time_ms, metavar="TIME", help="its end; health is that of this time"
    )


def run(args: argparse.Namespace) -> int:
    """Write the pages; return 0, or 1 without the extra that this command needs."""
    if args.since is not None and args.until is not None and args.since >= args.until:
        raise UsageError("--since must be before --until")
    try:
        from kvorum.spark.report.tables_directory import TablesDirectory  # noqa: PLC0415 - optional and slow to import
        from kvorum.spark.report.written_report import write_report  # noqa: PLC0415 - optional and slow to import
    except ImportError as error:
        problem = missing_package_text("the report", error, extra="spark")
        print(f"kvorum report: {problem}", file=sys.stderr)
        return 1
    pages = write_report(
        TablesDirectory(args.tables, dict(args.fs)),
        args.output,
        cluster_id=args.cluster,
        since_ms=args.since,
        until_ms=args.until,
    )
    for page in pages:
        print(page)
    return 0


def _local_path(text: str) -> Path:
    if "://" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is no path of this machine")
    return Path(text)
