"""Steps of Kafka's tools, which are run on our node and on a real one."""

import re
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from tests.support.kafka.java import ToolResult, ToolRunner
from tests.support.node import Node
from tests.support.waiting import are_alike, asked_until

Both = tuple[ToolResult, ToolResult]
"""The output of a step for our node, and for the real one."""
CLIENT_NUMBER: Final = re.compile(r"(clientId=adminclient-)\d+")
STACK_FRAME: Final = re.compile(r"^\s+at .*\n|^\t\.\.\. \d+ more\n", re.MULTILINE)
TIME_IN_LOG: Final = re.compile(r"^\[\d{4}-[^\]]*\]", re.MULTILINE)


def results_of(
    tools: ToolRunner,
    nodes: tuple[Node, Node],
    steps: Sequence[str],
    *,
    neutral: Callable[[str, Node], str],
    looks: Callable[[list[str]], bool],
    **places: str,
) -> list[Both]:
    """Run each step on ours and on the real node; return what `neutral` leaves of the outputs.

    A step is a command line with places for the options that name the server, ``{broker}`` and
    ``{controller}``, and for others. A broker of either kind shows a change a moment after the
    controller promised it, so that what only looks is asked again until both have settled.
    """

    def run(node: Node, step: str) -> ToolResult:
        broker = f"--bootstrap-server {node.address}"
        controller = f"--bootstrap-controller {node.controller}"
        line = step.format(broker=broker, controller=controller, **places)
        result = tools.run(*shlex.split(line))
        texts = (neutral(text, node) for text in (result.stdout, result.stderr))
        return ToolResult(result.exit_code, *texts)

    def ask(step: str) -> Both:
        ours, theirs = (run(node, step) for node in nodes)
        return ours, theirs

    return [
        asked_until(partial(ask, step), are_alike, f"{step}: alike")
        if looks(step.split())
        else ask(step)
        for step in steps
    ]


def without_own_names(text: str, node: Node) -> str:
    """Return a text without addresses, numbers of clients, times, and frames of stack traces."""
    for name, address in (("broker", node.address), ("controller", node.controller)):
        host, _, port = address.partition(":")
        text = text.replace(address, f"<{name}>")
        text = re.sub(rf"{re.escape(host)}(\s+){port}", rf"<{name}>\1", text)
    text = CLIENT_NUMBER.sub(r"\1<number>", text)
    text = STACK_FRAME.sub("", text)
    return TIME_IN_LOG.sub("[time]", text)
