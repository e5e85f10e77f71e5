"""Histories by their lines, made by hand: an invocation and a completion of each operation."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kvorum.client_histories.anomalies import Settings
from kvorum.client_histories.check import Report, check_history
from kvorum.client_histories.reader import read_history

Line = dict[str, Any]
SAFE_SETTINGS = Settings()
MILLISECOND = 1_000_000


def send(key: int, value: int, offset: int | None = None) -> list[Any]:
    return ["send", key, [offset, value]]


def poll(**records: Sequence[tuple[int, int]]) -> list[Any]:
    """Return a poll of the keys k1, k2 and so on: pairs of offset and value."""
    return [
        "poll",
        {key.removeprefix("k"): list(map(list, found)) for key, found in records.items()},
    ]


def polled(records: Mapping[int, Sequence[Sequence[int]]]) -> list[Any]:
    return ["poll", {str(key): list(map(list, found)) for key, found in records.items()}]


def invoked(steps: Iterable[Sequence[Any]]) -> list[Any]:
    """Return steps as an invocation has them: without what only a cluster knows."""
    return [["send", step[1], step[2][1]] if step[0] == "send" else ["poll"] for step in steps]


class Lines:
    """The lines of a history, which grow by operations."""

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self.lines = list(lines)

    def invoke(self, process: int, steps: Sequence[Any], function: str = "txn") -> None:
        value = list(steps) if function in {"assign", "subscribe", "crash"} else invoked(steps)
        self.lines.append({"p": process, "type": "invoke", "f": function, "v": value})

    def complete(
        self,
        process: int,
        steps: Sequence[Any],
        function: str = "txn",
        outcome: str = "ok",
        rebalanced: Sequence[int] = (),
    ) -> None:
        line = {"p": process, "type": outcome, "f": function, "v": list(steps)}
        self.lines.append(line | ({"rebalanced": list(rebalanced)} if rebalanced else {}))

    def add(
        self,
        process: int,
        *steps: Any,
        function: str = "txn",
        outcome: str = "ok",
        rebalanced: Sequence[int] = (),
    ) -> None:
        """Add an operation that completes at once."""
        self.invoke(process, steps, function)
        self.complete(process, steps, function, outcome, rebalanced)

    def texts(self) -> list[bytes]:
        return texts_of(self.lines)

    def report(self, settings: Settings = SAFE_SETTINGS) -> Report:
        return check_history(read_history(self.texts()), settings)


def texts_of(lines: Iterable[Line]) -> list[bytes]:
    """Return lines as the bytes of a file, with their places, and times where they have none."""
    return [
        json.dumps({"i": number, "t": number * MILLISECOND, **line}).encode() + b"\n"
        for number, line in enumerate(lines)
    ]


def names_in(report: Report) -> set[str]:
    """Return the names of what a report has, but for measures."""
    return {kind.anomaly.label for kind in report.counts} - {"realtime-lag", "consume-counts"}


def broken_by(report: Report) -> set[str]:
    """Return the names of what a report has that is never legal."""
    return {kind.anomaly.label for kind in report.counts if kind.legality.name == "NEVER"}
