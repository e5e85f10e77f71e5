"""Ways into the golden data that more than one test uses."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.source_tree import ROOT

GOLDEN = ROOT / "tests" / "golden"
METADATA_NODES = (
    "dynamic-4.3.1/metadata/broker-11",
    "dynamic-4.3.1/metadata/controller-1",
    "dynamic-4.3.1/metadata/controller-2",
    "ladder-4.3.1/metadata/controller-1",
    "standalone-4.3.1/metadata/broker-11",
    "standalone-4.3.1/metadata/broker-12",
    "static-3.9.1/metadata/broker-11",
    "static-3.9.1/metadata/controller-1",
    "static-3.9.1/metadata/controller-2",
)
"""The nodes whose metadata log is among the golden data, as folders under `golden_sets`."""


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a gzipped file of JSON lines, one at a time."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def metadata_directories(golden_sets: Path) -> list[Path]:
    """Return the metadata log directories that hold segments, in a fixed order."""
    found = {segment.parent for segment in golden_sets.glob("*/metadata/*/*/*.log")}
    return sorted(found)


def dump_text(file: Path, *, decoded: bool) -> Path:
    """Return where the text that kafka-dump-log printed for a golden file is."""
    ending = ".decoded.txt" if decoded else ".txt"
    return file.parent / "dumps" / (file.name + ending)
