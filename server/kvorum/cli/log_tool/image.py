"""``kvorum log image``: all that a metadata log says as of any offset or time."""

import argparse
import json
from pathlib import Path

from kvorum.cli import OK
from kvorum.cli.log_tool import PROGRAM
from kvorum.cli.log_tool.moments import add_moment, moment_of
from kvorum.cli.progress import read_progress
from kvorum.inspection.folding import fold_until
from kvorum.inspection.image_entries import image_entries
from kvorum.inspection.utc_text import utc_text

NAME = "image"
HELP = "print the cluster's metadata as of an offset, a line for each path and value"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the path and options."""
    parser.add_argument(
        "path",
        type=Path,
        metavar="PATH",
        help="a node's log directory, its __cluster_metadata-0, a segment or a snapshot",
    )
    add_moment(parser)
    parser.add_argument(
        "--below",
        default="",
        metavar="PREFIX",
        help="print only paths that begin so, such as topics/byName/orders/",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, an object a line")


def run(arguments: argparse.Namespace) -> int:
    """Print the image, its place first."""
    with read_progress(PROGRAM) as reading:
        folded = fold_until(
            arguments.path, moment_of(arguments), warn=reading.warn, tell=reading.tell
        )
    place = folded.provenance
    time = utc_text(place.timestamp_ms)
    if arguments.json:
        print(json.dumps({"offset": place.offset, "epoch": place.epoch, "time": time}))
    else:
        print(f"offset {place.offset}, epoch {place.epoch}, {time}")
    for path, value in image_entries(folded):
        if not path.startswith(arguments.below):
            continue
        line = {"path": path, "value": value}
        print(json.dumps(line, ensure_ascii=False) if arguments.json else f"{path}\t{value}")
    return OK
