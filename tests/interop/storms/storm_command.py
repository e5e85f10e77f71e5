"""The command line of storms: for how long, from which seed, and which brokers are kvorum's."""

import argparse
import shutil
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Final

from tests.support.kafka.fetch_jars import JARS_ROOT, REFERENCE_RELEASE, find_java
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Kind

EVERYBODY: Final = frozenset({11, 12, 13})
"""The brokers of a storm."""
FLAWS_SHOWN_MAX: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StormRun:
    """A storm that a command line asks for; `arguments` are all of its options."""

    arguments: argparse.Namespace
    folder: Path
    java: Java
    tools: ToolRunner

    @property
    def controllers(self) -> Kind:
        """Whose controllers are below the brokers."""
        kind: Kind = self.arguments.controllers
        return kind

    @property
    def ours(self) -> Collection[int]:
        """The ids of the brokers that are kvorum's."""
        return [int(node_id) for node_id in self.arguments.ours.split(",") if node_id]

    @property
    def seconds(self) -> float:
        """The time that the storm lasts."""
        return float(self.arguments.minutes) * 60

    @property
    def random(self) -> Random:
        """A new generator of the seed that was given."""
        return Random(self.arguments.seed)


def storm_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser for the options of every storm."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--ours", default="11,12,13", help="which of 11, 12, 13 are kvorum's")
    parser.add_argument("--controllers", choices=("kvorum", "kafka"), default="kvorum")
    parser.add_argument("--seed", type=int, default=1)
    return parser


def run_storm(
    parser: argparse.ArgumentParser,
    pass_over: Callable[[StormRun], tuple[object, Sequence[str]]],
) -> None:
    """Have a storm pass over brokers, print its figures, and exit with 1 after flaws.

    `pass_over` returns both. The brokers' files stay unless there were none.
    """
    arguments = parser.parse_args()
    java = Java(find_java(), JARS_ROOT / REFERENCE_RELEASE)
    folder = Path(mkdtemp(prefix="storm-"))
    sys.stdout.write(f"the brokers' files are in {folder}, and stay there after a failure\n")
    with ToolRunner(java) as tools:
        run = StormRun(arguments=arguments, folder=folder, java=java, tools=tools)
        figures, flaws = pass_over(run)
    sys.stdout.write(f"{figures}\n")
    if flaws:
        sys.stdout.write("\n".join(flaws[:FLAWS_SHOWN_MAX]) + "\n")
        sys.exit(1)
    shutil.rmtree(folder)
