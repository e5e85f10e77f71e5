"""``kvorum check-history``: find out from what clients saw whether a cluster kept its promises."""

import argparse
import json
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Final

from kvorum.cli import FAILED, OK, UsageError
from kvorum.cli.progress import read_progress
from kvorum.cli.shared_arguments import whole_number
from kvorum.client_histories.anomalies import Anomaly, Legality, Settings
from kvorum.client_histories.check import CASES_KEPT, InterruptedCheckError, Report, check_history
from kvorum.client_histories.findings import Facts, Kind, Strip
from kvorum.client_histories.history import Operation, Record
from kvorum.client_histories.history_error import HistoryError
from kvorum.client_histories.reader import read_history
from kvorum.client_histories.spool import Spool
from kvorum.inspection.reading import Tell

NAME = "check-history"
HELP = "find anomalies in histories of clients: lost, repeated, torn, unordered records"
PROGRAM: Final = "kvorum check-history"
STANDARD_INPUT: Final = Path("-")
READ_COMMITTED: Final = "read_committed"
READ_UNCOMMITTED: Final = "read_uncommitted"
_LINES_PER_REPORT: Final = 10_000
"""The number of lines after which the progress is reported."""
_RECORDS_SHOWN_MAX: Final = 12
"""The number of records of an operation that are printed; a poll may have thousands."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the files and options."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a history, in lines of JSON (docs/histories.md); - for standard input",
    )
    parser.add_argument(
        "--isolation-level",
        choices=[READ_COMMITTED, READ_UNCOMMITTED],
        default=READ_COMMITTED,
        help="that of the consumers (default: read_committed)",
    )
    parser.add_argument(
        "--no-idempotence",
        action="store_true",
        help="the producers had enable.idempotence=false, so duplicates are legal",
    )
    parser.add_argument(
        "--no-final-read",
        action="store_true",
        help="not everything was polled at the end, so unseen values are reported only",
    )
    parser.add_argument(
        "--exclude",
        type=_anomalies,
        default=frozenset(),
        metavar="NAME,NAME",
        help="anomalies that break no history here, as lost-write where records are deleted",
    )
    parser.add_argument(
        "--cases",
        type=whole_number(0),
        default=CASES_KEPT,
        metavar="N",
        help=f"how many cases of each anomaly to print (default: {CASES_KEPT})",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print a line of JSON for each case, for each anomaly, and for each file",
    )


def run(arguments: argparse.Namespace) -> int:
    """Check, and return 0 where all histories are sound, 1 where one is not."""
    settings = Settings(
        is_read_committed=arguments.isolation_level == READ_COMMITTED,
        is_idempotent=not arguments.no_idempotence,
        is_read_to_the_end=not arguments.no_final_read,
        excluded=arguments.exclude,
    )
    is_sound = True
    for file in arguments.files:
        with TemporaryFile() as spool:
            try:
                report = _check(file, settings, arguments.cases, Spool(spool))
            except InterruptedCheckError as error:
                _print_interrupted(file, error, is_json=arguments.json)
                raise
            lines = _objects(file, report) if arguments.json else _lines(file, report)
            for line in lines:
                print(line)
        is_sound = is_sound and report.is_sound
    return OK if is_sound else FAILED


def _print_interrupted(file: Path, error: InterruptedCheckError, *, is_json: bool) -> None:
    """Print what was found before Ctrl-C, without a verdict."""
    report = error.report
    lines = _objects_of_cases(file, report) if is_json else _lines_of_cases(report)
    for line in lines:
        print(line)
    known = len(report.history.keys)
    if is_json:
        place = {"type": "interrupted", "file": str(file)}
        print(json.dumps({**place, "keysChecked": error.key_count, "keys": known}), flush=True)
        return
    done = f"{error.key_count:,} of {_counted(known, 'key')}"
    print(f"interrupted: {file}: {done} done with, and no verdict", flush=True)


def _anomalies(text: str) -> frozenset[Anomaly]:
    """Return the anomalies that are named with commas between them."""
    by_label = {anomaly.label: anomaly for anomaly in Anomaly}
    unknown = [name for name in text.split(",") if name not in by_label]
    if unknown:
        known = ", ".join(by_label)
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {known}")
    return frozenset(by_label[name] for name in text.split(","))


def _check(file: Path, settings: Settings, cases: int, spool: Spool) -> Report:
    """Return what is in a file; raise UsageError for one that is not a history."""
    try:
        with read_progress(PROGRAM) as reading, _opened(file) as opened:
            history = read_history(_told(opened, file, reading.tell), spool)
            return check_history(history, settings, cases)
    except HistoryError as error:
        raise UsageError(f"{file}:{error.line}: {error.problem}") from error
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error


@contextmanager
def _opened(file: Path) -> Generator[BinaryIO]:
    if file == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    with file.open("rb") as opened:
        yield opened


def _told(lines: Iterable[bytes], file: Path, tell: Tell) -> Iterator[bytes]:
    """Yield lines, and report from time to time how many bytes they had."""
    position = 0
    for number, line in enumerate(lines):
        position += len(line)
        if number % _LINES_PER_REPORT == 0:
            tell(file, position)
        yield line


def _in_order(kinds: Iterable[Kind]) -> list[Kind]:
    """Return kinds of cases with those that are never legal first, else as anomalies are listed."""
    weights = [*Legality]
    anomalies = [*Anomaly]
    return sorted(
        kinds,
        key=lambda kind: (
            kind.legality is not Legality.NEVER,
            anomalies.index(kind.anomaly),
            weights.index(kind.legality),
        ),
    )


# -- for people --------------------------------------------------------------------------------


def _lines(file: Path, report: Report) -> Iterator[str]:
    yield from _lines_of_cases(report)
    yield from _summary_lines(file, report)


def _lines_of_cases(report: Report) -> Iterator[str]:
    for kind in _in_order(report.counts):
        count = report.counts[kind]
        yield f"{kind.anomaly.label}, {kind.legality.value}: {_counted(count, 'case')}"
        yield f"  {kind.anomaly.meaning[0].upper()}{kind.anomaly.meaning[1:]}."
        kept = report.kept.get(kind, [])
        for facts in kept:
            yield from _case_lines(facts, report)
        if 0 < len(kept) < count:
            yield f"  and {count - len(kept):,} more"


def _case_lines(facts: Facts, report: Report) -> Iterator[str]:
    yield f"  - {facts.problem}"
    keys = {strip.key for strip in facts.strips}
    for number in facts.operations:
        yield f"    {_operation_line(report.history.operation(number), keys)}"
    for strip in facts.strips:
        if strip.places:
            yield f"    the log of key {strip.key}: {_strip_line(strip)}"


def _summary_lines(file: Path, report: Report) -> Iterator[str]:
    history = report.history
    if history.torn_line is not None:
        yield f"line {history.torn_line} is torn: the history was read to the line before it"
    counts = ", ".join(f"{count:,} {name}" for name, count in report.outcomes.items())
    verdict = "sound" if report.is_sound else "broken"
    yield (
        f"{verdict}: {file}: {_counted(len(history), 'operation')} ({counts}), "
        f"{_counted(len(history.keys), 'key')}"
    )


def _operation_line(operation: Operation, keys: set[str]) -> str:
    """Return an operation in a line, with what it did to some keys."""
    if operation.completed_line is None:
        place = f"line {operation.invoked_line}, never completed"
    else:
        place = f"lines {operation.invoked_line} and {operation.completed_line}"
    steps = [
        f"{verb} {_records_line([one for one in records if one.key in keys or not keys])}"
        for verb, records in (("sent", operation.sent), ("polled", operation.polled))
        if any(one.key in keys or not keys for one in records)
    ]
    done = "; ".join(steps) or "nothing of this"
    return f"{place}: process {operation.process}, {operation.outcome} {operation.kind}: {done}"


def _records_line(records: list[Record]) -> str:
    texts: list[str] = []
    key: str | None = None
    for record in records[:_RECORDS_SHOWN_MAX]:
        if record.key != key:
            key = record.key
            texts.append(f"key {key}")
        texts.append(f"{'?' if record.offset is None else record.offset}:{record.value}")
    more = len(records) - _RECORDS_SHOWN_MAX
    return " ".join([*texts, *([f"and {more:,} more"] if more > 0 else [])])


def _strip_line(strip: Strip) -> str:
    texts = [f"{place.offset}:{'|'.join(map(str, place.values))}" for place in strip.places]
    return " ".join(
        f"[{text}]" if place.offset in strip.centers else text
        for text, place in zip(texts, strip.places, strict=True)
    )


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"


# -- for programs ------------------------------------------------------------------------------


def _objects(file: Path, report: Report) -> Iterator[str]:
    yield from _objects_of_cases(file, report)
    yield _object_of_history(file, report)


def _objects_of_cases(file: Path, report: Report) -> Iterator[str]:
    for kind in _in_order(report.counts):
        legality = kind.legality.name.lower()
        named = {"file": str(file), "anomaly": kind.anomaly.label, "legality": legality}
        for facts in report.kept.get(kind, []):
            yield json.dumps({"type": "case", **named, **_facts_object(facts, report)})
        count = report.counts[kind]
        yield json.dumps({"type": "anomaly", **named, "cases": count})


def _object_of_history(file: Path, report: Report) -> str:
    history = report.history
    return json.dumps(
        {
            "type": "history",
            "file": str(file),
            "verdict": "sound" if report.is_sound else "broken",
            "operations": len(history),
            **report.outcomes,
            "keys": len(history.keys),
            "tornLine": history.torn_line,
        }
    )


def _facts_object(facts: Facts, report: Report) -> dict[str, Any]:
    operations = map(report.history.operation, facts.operations)
    return {
        "problem": facts.problem,
        "operations": [_operation_object(operation) for operation in operations],
        "logs": [
            {"key": strip.key, "log": [[place.offset, *place.values] for place in strip.places]}
            for strip in facts.strips
        ],
    }


def _operation_object(operation: Operation) -> dict[str, Any]:
    return {
        "invokedLine": operation.invoked_line,
        "completedLine": operation.completed_line,
        "p": operation.process,
        "type": operation.outcome,
        "f": operation.kind,
        "sent": [[record.key, record.offset, record.value] for record in operation.sent],
        "polled": [[record.key, record.offset, record.value] for record in operation.polled],
    }
