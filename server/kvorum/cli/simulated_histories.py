"""The files of the histories that the clients of a simulated world have."""

import shlex
from collections.abc import Iterable
from pathlib import Path

from kvorum.simulation.partitions.history_check import WrittenHistory


def write_histories(directory: Path, histories: Iterable[WrittenHistory]) -> None:
    """Write a file for each isolation level, and print the command that checks it."""
    for history in histories:
        level = history.isolation.name.lower()
        path = directory / f"{level}.jsonl"
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in history.lines), encoding="utf-8")
        command = ["kvorum", "check-history", str(path), "--isolation-level", level]
        if history.excluded:
            command += ["--exclude", ",".join(sorted(one.label for one in history.excluded))]
        print(f"check with: {shlex.join(command)}")
