"""A real node and ours with the same listeners, for clients that come to both."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import LEVELS_OF_OURS, STANDALONE, Node
from tests.support.tls_nodes import Listeners


class Sides(NamedTuple):
    """A real node and ours, with the same listeners, each at its own ports."""

    real: Listeners
    ours: Listeners


@contextmanager
def running_sides(
    sides: Sides,
    folder: Path,
    settings: Callable[[Listeners], Mapping[str, str]],
    *,
    java: Java,
    tools: ToolRunner,
    format_options: Sequence[str] = (),
) -> Generator[Sides]:
    """Format and run both nodes, each with the settings for its listeners."""
    formatting = (*STANDALONE, *format_options)
    theirs, ours = map(settings, sides)
    with (
        Node(folder / "real", theirs, java=java, ports=sides.real.own_ports).format(
            (*formatting, *LEVELS_OF_OURS), tools=tools
        ),
        Node(folder / "ours", ours, ports=sides.ours.own_ports).format(formatting),
    ):
        yield sides
