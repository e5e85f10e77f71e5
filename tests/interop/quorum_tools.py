"""Our tools and Kafka's for a running cluster, run alike, and what they print made comparable."""

import io
import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from itertools import pairwise
from typing import Final

from tests.support.kafka.java import ToolResult, ToolRunner
from tests.support.node import FEATURES_SERVED_IN_PART, Node
from tests.support.waiting import are_alike, asked_until

from kvorum.cli import cluster, features, quorum
from kvorum.metadata.features import Feature

LOG_LINE = re.compile(r"\[\d{4}-\d\d-\d\d .*?\] [A-Z]+ ")
TRACE_LINE = re.compile(r"\s+(at|\.\.\.) |Caused by: ")


OURS: Final = {
    "kafka-metadata-quorum": quorum.main,
    "kafka-cluster": cluster.main,
    "kafka-features": features.main,
}


def run_ours(arguments: Sequence[str], tool: str = "kafka-metadata-quorum") -> ToolResult:
    """Run our counterpart of one of Kafka's tools in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = OURS[tool](arguments)
    return ToolResult(code, out.getvalue(), err.getvalue())


def run_real(
    arguments: Sequence[str], tools: ToolRunner, tool: str = "kafka-metadata-quorum"
) -> ToolResult:
    return tools.run(tool, *arguments)


def with_levels_of_ours_mapped(line: str, said: str) -> str:
    """Return what Kafka's version-mapping says, with the levels that ours serves at most."""
    if "version-m" not in line:
        return said
    for name, feature in FEATURES_SERVED_IN_PART.items():
        level = re.compile(rf"(?m)^{re.escape(name)}=(\d+)$")
        said = level.sub(partial(_served_level, feature), said)
    return said


def _served_level(feature: Feature, found: re.Match[str]) -> str:
    return f"{feature.name}={min(int(found[1]), feature.served_max)}"


def without_features_served_in_part(text: str) -> str:
    """Return what kafka-features describes, without those of which a real node offers more."""
    names = "|".join(map(re.escape, FEATURES_SERVED_IN_PART))
    return re.sub(rf"(?m)^Feature: ({names})\s.*\n?", "", text)


def comparable(result: ToolResult) -> ToolResult:
    """Leave out of standard error what only one of the tools can have.

    That is the usage text before a complaint (its layout is the parsers' own, and Kafka's stretches
    the complaint's blanks too), what was logged on the way, and Java's stack traces; the causes
    that those name are kept, unless they repeat the message.
    """
    text = result.stderr
    if "usage: " in text:
        complaint = " ".join(text[text.index(" error:") :].split())
        # The complaint is wrapped, behind hyphens too.
        return ToolResult(
            result.exit_code, result.stdout, re.sub(r"(?<=[\w-])- (?=\w)", "-", complaint)
        )
    lines = _not_logged(text)
    causes = [line for line in lines[1:] if line.startswith("Caused by: ")]
    told = [*lines[:1], *(line for line in causes if line != f"Caused by: {lines[0]}")]
    return ToolResult(result.exit_code, result.stdout, "\n".join(told))


def _not_logged(text: str) -> list[str]:
    """Return the lines that are no log lines, and not the stack trace that one of them brings."""
    kept: list[str] = []
    is_in_log = False
    for line, following in pairwise([*filter(None, text.splitlines()), ""]):
        begins_trace = following.startswith("\tat ")
        if LOG_LINE.match(line):
            is_in_log = True
        elif not (is_in_log and (begins_trace or TRACE_LINE.match(line))):
            is_in_log = False
            kept.append(line)
    return kept


def logged(result: ToolResult) -> set[str]:
    """Return what was logged: each line once, without time, class and the client's number."""
    lines = (line for line in result.stderr.splitlines() if LOG_LINE.match(line))
    plain = (re.sub(r" \(org\.apache\.[\w.]+\)$", "", line) for line in lines)
    return {re.sub(r"(?<=adminclient-)\d+", "N", LOG_LINE.sub("", line)) for line in plain}


def without_progress(result: ToolResult) -> ToolResult:
    """Hide the offsets and times of a description: they are others a moment later.

    The status keeps the leader's epoch, every id and every endpoint. The table keeps every id and
    the status of each replica, and the order of the rows.
    """
    text = re.sub(
        r"^((?:HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs): +)-?\d+$",
        r"\1N",
        result.stdout,
        flags=re.MULTILINE,
    )
    row = re.compile(
        r"^(\d+ *\t[\w-]{22} *\t)\d+ *\t(-?\d+) *\t(-1|\d+ ms ago|\d+) *\t(-1|\d+ ms ago|\d+) *\t"
        r"(\w+)",
        re.MULTILINE,
    )
    text = row.sub(lambda found: f"{found[1]} {found[5]} {_kind(found[3])} {_kind(found[4])}", text)
    return ToolResult(result.exit_code, re.sub(r" +", " ", text), result.stderr)


def _kind(time: str) -> str:
    return "never" if time == "-1" else "ago" if time.endswith("ago") else "time"


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
    return TIME_IN_LOG.sub("[time]", STACK_FRAME.sub("", text))


def assert_alike(
    tool: str, arguments: Sequence[str], tools: ToolRunner, exit_code: int, *, secret: str
) -> str:
    """Check that both tools end alike, and return the error of Kafka's; ours has a cause of its."""
    theirs = without_progress(comparable(run_real(arguments, tools, tool)))
    ours = without_progress(comparable(run_ours(arguments, tool)))
    assert theirs.exit_code == exit_code
    assert (ours.exit_code, ours.stdout) == (theirs.exit_code, theirs.stdout)
    told, *causes = ours.stderr.splitlines() or [""]
    told_by_theirs, *their_causes = theirs.stderr.splitlines() or [""]
    assert told == told_by_theirs
    assert set(causes) <= set(their_causes), (causes, their_causes)
    assert bool(causes) == ("Failed to create" in told)
    assert secret not in ours.stderr
    return told
