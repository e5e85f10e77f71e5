"""``kvorum log check``: find damage in the files of logs, without a node and without writing."""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from kvorum.cli import FAILED, OK, UsageError
from kvorum.cli.log_tool import PROGRAM
from kvorum.cli.missing_package import missing_package_text
from kvorum.cli.progress import read_progress
from kvorum.inspection.log_check.check import (
    InterruptedCheckError,
    NothingToCheckError,
    Report,
    check_paths,
)
from kvorum.inspection.log_check.findings import Finding, Severity, Verdict

NAME = "check"
HELP = "find damage in files of logs: of a partition, a log directory, or several replicas"
_UNSOUND: Final = (Verdict.DAMAGED, Verdict.UNREADABLE, Verdict.TORN_TAIL)
"""The verdicts that hold for a file of which only a part was read."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the paths and options."""
    checked = parser.add_mutually_exclusive_group(required=True)
    checked.add_argument(
        "paths",
        nargs="*",
        # argparse takes this very list for the absence of paths.
        default=[],
        type=Path,
        metavar="PATH",
        help="a file, a partition's directory, a node's log directory, or one with many of them "
        "below it; replicas of one log among them are compared",
    )
    checked.add_argument(
        "--explain",
        type=_place,
        metavar="FILE@POSITION",
        help="print what a file has around a byte, field by field",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print a line of JSON for each finding, for each file, and one for everything",
    )


def run(arguments: argparse.Namespace) -> int:
    """Check, and return 0 where everything is sound, 1 where there is damage."""
    if arguments.explain is not None:
        if arguments.json:
            raise UsageError("--explain prints no JSON")
        return _explain(*arguments.explain)
    try:
        with read_progress(PROGRAM) as reading:
            report = check_paths(arguments.paths, tell=reading.tell)
    except NothingToCheckError as error:
        raise UsageError(str(error)) from error
    except InterruptedCheckError as error:
        _print_interrupted(error, is_json=arguments.json)
        raise
    if arguments.json:
        _print_json(report)
    else:
        _print_text(report)
    return OK if report.verdict in {Verdict.SOUND, Verdict.TORN_TAIL} else FAILED


def _place(text: str) -> tuple[Path, int]:
    path, _, position = text.rpartition("@")
    if not path or not position.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not FILE@POSITION")
    return Path(path), int(position)


def _print_text(report: Report) -> None:
    _print_findings(report)
    counts = Counter(report.files.values())
    parts = [
        f"{count} {verdict.value}"
        for verdict, count in sorted(counts.items(), key=lambda item: item[0].value)
    ]
    print(f"{report.verdict.value}: {len(report.files)} files: {', '.join(parts)}")


def _print_findings(report: Report) -> None:
    for finding in report.findings:
        print(f"{finding.severity.value}: {finding.text} [{finding.rule.label}]")
        if finding.severity is not Severity.NOTE:
            print(f"  {finding.rule.meaning}. {finding.rule.advice}.")
        if finding.is_damage and finding.position is not None:
            print(f"  Its bytes: kvorum log check --explain '{finding.file}@{finding.position}'")


def _print_json(report: Report) -> None:
    for finding in report.findings:
        print(json.dumps(_finding_object(finding)))
    by_file = Counter(finding.file for finding in report.findings)
    for file, verdict in report.files.items():
        found = {"type": "file", "file": str(file), "verdict": verdict.value}
        print(json.dumps({**found, "findings": by_file[file]}))
    overall = {"type": "overall", "verdict": report.verdict.value}
    print(json.dumps({**overall, **_counts_object(report)}))


def _print_interrupted(error: InterruptedCheckError, *, is_json: bool) -> None:
    """Print what was found before Ctrl-C; no file is called sound, as a part may be unread."""
    report = error.report
    reached = error.reached
    if is_json:
        for finding in report.findings:
            print(json.dumps(_finding_object(finding)))
        file = None if reached.file is None else str(reached.file)
        place = {"type": "interrupted", "file": file, "position": reached.position}
        print(json.dumps({**place, **_counts_object(report)}), flush=True)
        return
    _print_findings(report)
    counts = Counter(report.files.values())
    parts = [f"{counts[verdict]} {verdict.value}" for verdict in _UNSOUND if counts[verdict]]
    found = ", ".join(parts) or "no damage"
    files = "1 file" if len(report.files) == 1 else f"{len(report.files)} files"
    print(f"interrupted {reached.text}: {files} so far: {found}", flush=True)


def _counts_object(report: Report) -> dict[str, int]:
    """Return the number of files, and of the findings of each severity."""
    counts = Counter(finding.severity for finding in report.findings)
    by_severity = {severity.value.replace(" ", "_"): counts[severity] for severity in Severity}
    return {"files": len(report.files), **by_severity}


def _finding_object(finding: Finding) -> dict[str, object]:
    return {
        "type": "finding",
        "severity": finding.severity.value,
        "rule": finding.rule.label,
        "file": str(finding.file),
        "position": finding.position,
        "offset": finding.offset,
        "problem": finding.problem,
        "meaning": finding.rule.meaning,
        "advice": finding.rule.advice,
    }


def _explain(path: Path, position: int) -> int:
    try:
        from kvorum.inspection.explain import UnknownLayoutError, explain  # noqa: PLC0415 - optional: construct
    except ImportError as error:
        problem = missing_package_text("--explain", error, extra="tools")
        print(f"{PROGRAM}: {problem}", file=sys.stderr)
        return FAILED
    try:
        explanation = explain(path, position)
    except UnknownLayoutError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        print(f"Cannot read {path}: {error.strerror}", file=sys.stderr)
        return FAILED
    for row in explanation.rows:
        mark = ">" if row.is_asked else " "
        kind = "unpacked " if row.is_unpacked else ""
        place = f"{kind}{row.start}..{row.end - 1}" if row.end > row.start else f"{kind}{row.start}"
        print(f"{mark} {place:>16}  {row.path:<32} {row.data.hex(' '):<48} {row.value}")
    print(explanation.problem or "All of it is in its form.")
    return FAILED if explanation.problem else OK
