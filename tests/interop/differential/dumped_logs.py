"""Both logs once more, in the words of the real kafka-dump-log."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.interop.differential.comparing import Difference, Names, differences
from tests.interop.differential.harness import Outcome
from tests.interop.differential.metadata_log import NO_OP, LogRecord
from tests.interop.differential.sides import Side
from tests.interop.differential.view import ClusterView
from tests.support.dump_log import read_dump
from tests.support.kafka.java import Java
from tests.support.kafka.tools import TOOL_CLASSES


def dumped(java: Java, log: Path, text: Path) -> list[LogRecord]:
    """Return the metadata records of a log as real Kafka's tool prints them."""
    options = ("--cluster-metadata-decoder", "--files", str(log))
    command = java.command(TOOL_CLASSES["kafka-dump-log"], *options)
    with text.open("wb") as out:
        subprocess.run(command, stdout=out, check=True)
    records = [
        LogRecord(record.offset, _name(record.type), record.version or 0, json.loads(record.json))
        for record in read_dump(text)
        if record.record_kind == "metadata" and record.json is not None
    ]
    return [record for record in records if record.type != NO_OP]


def _name(printed: str) -> str:
    """Return a record's name, which the tool prints as TOPIC_RECORD and the like."""
    return "".join(part.capitalize() for part in printed.split("_"))


class DumpedLog:
    """The records of one side's log, taken script by script."""

    def __init__(self, side: Side, records: Sequence[LogRecord], *, index: int) -> None:
        self._records = iter(records)
        self._next = next(self._records, None)
        self._index = index
        self._own = side.own_names
        self._view = ClusterView()

    def rows_of(self, outcome: Outcome) -> list[object]:
        """Return what each step of a script has written, as it is to be compared."""
        self._view.fold(self._before(outcome.start_offsets[self._index]))
        self._view.begin_script()
        names = Names(self._view, outcome.known_uuids, self._own)
        rows: list[object] = []
        for span in outcome.spans:
            records = list(self._before(span.end_offsets[self._index]))
            self._view.fold(records)
            rows.append(names.records(span.api, records, is_placed=span.is_placed))
        return rows

    def _before(self, offset: int) -> Iterator[LogRecord]:
        while self._next is not None and self._next.offset < offset:
            yield self._next
            self._next = next(self._records, None)


def dump_differences(
    java: Java, sides: tuple[Side, Side], outcomes: Sequence[Outcome]
) -> Iterator[tuple[str, Difference]]:
    """Yield where the logs differ, with the script's name; findings are not told again."""
    real, ours = (
        DumpedLog(side, dumped(java, side.log.path, side.node.folder / "dump.txt"), index=index)
        for index, side in enumerate(sides)
    )
    for outcome in outcomes:
        pair = real.rows_of(outcome), ours.rows_of(outcome)
        if not outcome.findings:
            for difference in differences(*pair, "records"):
                yield outcome.script.name, difference
