"""Run ``kvorum dump-log`` in this process."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import pytest

from kvorum.cli import dump_log


class Dumped(NamedTuple):
    """How it ended, and what it printed."""

    exit_code: int
    stdout: str
    stderr: str


def dump(capture: pytest.CaptureFixture[str], *arguments: str) -> Dumped:
    parser = argparse.ArgumentParser()
    dump_log.configure(parser)
    capture.readouterr()
    code = dump_log.run(parser.parse_args(arguments))
    printed = capture.readouterr()
    return Dumped(code, printed.out, printed.err)


def decoder_of(file: Path) -> str:
    """Return the option that fits a file, by the name of its partition."""
    for topic, option in (
        ("__consumer_offsets", "--offsets-decoder"),
        ("__transaction_state", "--transaction-log-decoder"),
        ("__share_group_state", "--share-group-state-decoder"),
    ):
        if file.parent.name.startswith(topic):
            return option
    is_metadata = file.parent.name == "__cluster_metadata-0" or file.name == "bootstrap.checkpoint"
    return "--cluster-metadata-decoder" if is_metadata else "--print-data-log"
