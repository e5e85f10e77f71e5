"""``kvorum log diff``: what differs between two offsets of a log, two files, or two replicas."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kvorum.cli import FAILED, OK, UsageError
from kvorum.cli.log_tool import PROGRAM
from kvorum.cli.log_tool.moments import offset
from kvorum.cli.progress import read_progress
from kvorum.cli.shared_arguments import time_ms
from kvorum.inspection.folded_log import FoldedLog
from kvorum.inspection.folding import fold_until
from kvorum.inspection.image_entries import (
    Change,
    demand_log,
    image_changes,
    is_metadata_log,
    log_differences,
    read_through,
)
from kvorum.inspection.moment import Moment
from kvorum.inspection.reading import Reached
from kvorum.inspection.utc_text import utc_text

NAME = "diff"
HELP = "print what differs between two offsets of a log, two files, or two replicas"
_PATHS_MAX: Final = 2


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the paths and options."""
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="one metadata log, or two of them, or two replicas of any partition",
    )
    for side, which in (("from", "first"), ("to", "second")):
        group = parser.add_mutually_exclusive_group()
        group.add_argument(
            f"--{side}",
            dest=f"{side}_offset",
            type=offset,
            metavar="OFFSET",
            help=f"the {which} image is that as of this offset (default: the last one)",
        )
        group.add_argument(
            f"--{side}-time",
            type=time_ms,
            metavar="TIME",
            help=f"the {which} image is that as of this time, in ISO 8601",
        )
    parser.add_argument("--json", action="store_true", help="print JSON, an object a line")


def run(arguments: argparse.Namespace) -> int:
    """Print the differences; return 0 without any, and 1 as diff does where there are some."""
    paths: list[Path] = arguments.paths
    before = Moment(arguments.from_offset, arguments.from_time)
    after = Moment(arguments.to_offset, arguments.to_time)
    if len(paths) > _PATHS_MAX:
        raise UsageError("name one or two paths")
    if len(paths) == 1 and before == after:
        raise UsageError("with one path, two moments are compared: give --from, or another --to")
    first, second = paths[0], paths[-1]
    parted: list[str] = []
    if len(paths) == _PATHS_MAX and first.is_dir() and second.is_dir():
        for path in paths:
            demand_log(path)
        parted = _print_logs(first, second, is_json=arguments.json)
    if len(paths) == _PATHS_MAX and not (is_metadata_log(first) and is_metadata_log(second)):
        return FAILED if parted else OK
    with read_progress(PROGRAM) as reading:
        olds = fold_until(first, before, warn=reading.warn, tell=reading.tell)
        news = fold_until(second, after, warn=reading.warn, tell=reading.tell)
        changes = list(image_changes(olds, news))
    if arguments.json:
        for change in changes:
            print(json.dumps(change._asdict(), ensure_ascii=False))
    else:
        print("\n".join(_lines(first, olds, second, news, changes)))
    return FAILED if changes or parted else OK


def _print_logs(first: Path, second: Path, *, is_json: bool) -> list[str]:
    """Print where two logs end, part and are damaged; return what differs."""
    differences: list[str] = []
    ends: dict[str, int] = {}
    reached = Reached()
    try:
        with read_progress(PROGRAM) as reading:
            reached.hand_on = reading.tell
            for path in (first, second):
                ends[str(path)] = read_through(
                    path, warn=reading.warn, tell=reached.tell, damages=differences
                )
            differences += log_differences(first, second, warn=reading.warn)
    except KeyboardInterrupt:
        _print_interrupted(differences, reached, is_json=is_json)
        raise
    low, high = min(ends.values()), max(ends.values())
    if low < high:
        missing = f"offset {low}" if high == low + 1 else f"offsets {low} to {high - 1}"
        differences.append(f"the shorter log lacks {missing}")
    if is_json:
        print(json.dumps({"logEndOffsets": ends, "differences": differences}))
        return differences
    for directory, end in ends.items():
        print(f"{directory} ends before offset {end}")
    print("\n".join(differences) or "the logs are equal")
    return differences


def _print_interrupted(differences: list[str], reached: Reached, *, is_json: bool) -> None:
    """Print what was found in the logs before Ctrl-C."""
    if is_json:
        file = None if reached.file is None else str(reached.file)
        place = {"file": file, "position": reached.position}
        print(json.dumps({"interrupted": place, "differences": differences}), flush=True)
        return
    for text in differences:
        print(text)
    count = len(differences)
    found = "1 difference" if count == 1 else f"{count} differences"
    print(f"interrupted {reached.text}: {found} so far", flush=True)


def _lines(
    first: Path, olds: FoldedLog, second: Path, news: FoldedLog, changes: list[Change]
) -> Iterator[str]:
    for mark, path, folded in (("---", first, olds), ("+++", second, news)):
        place = folded.provenance
        yield f"{mark} {path} as of offset {place.offset}, {utc_text(place.timestamp_ms)}"
    for change in changes:
        if change.before is not None:
            yield f"- {change.path}\t{change.before}"
        if change.after is not None:
            yield f"+ {change.path}\t{change.after}"
    if len(changes) == 1:
        yield "1 path differs"
    else:
        yield f"{len(changes)} paths differ" if changes else "the images are equal"
