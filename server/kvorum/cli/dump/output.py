"""Output of a dump: many lines at a time, and the mismatches on standard error after all files."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from kvorum.cli.dump.small_files import Findings
from kvorum.metadata.java_hash import hash_table_order

# Characters. A write of each line would cost more than what is in it; the text of many more would
# no longer be in the processor's cache when it is written.
_TOGETHER: Final = 1 << 15
Found = TypeVar("Found")
Pair = tuple[int, int]


def print_lines(lines: Iterable[str]) -> None:
    """Print lines; whatever was yielded before an error is printed as well."""
    for text in texts_of_lines(lines):
        sys.stdout.write(text)


def texts_of_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield texts of many lines; an error in `lines` comes after the text before it."""
    waiting: list[str] = []
    size = 0
    try:
        for each in lines:
            waiting.append(each)
            size += len(each)
            if size >= _TOGETHER:
                waiting.append("")
                yield "\n".join(waiting)
                waiting.clear()
                size = 0
    except Exception:
        yield "".join(f"{each}\n" for each in waiting)
        raise
    yield "".join(f"{each}\n" for each in waiting)


@dataclass(slots=True)
class Complaints:
    """The messages for standard error, by the absolute name of the file.

    `gaps` are pairs of offsets that are neighbours in a log but not consecutive. `now` has the
    messages to print directly after the current file.
    """

    gaps: dict[str, dict[int, int]] = field(default_factory=dict[str, dict[int, int]])
    findings: dict[str, Findings] = field(default_factory=dict[str, Findings])
    now: list[str] = field(default_factory=list[str])

    def lines(self) -> Iterator[str]:
        """Yield the messages in Kafka's order: indexes, time indexes, logs."""
        yield from self._section(
            "Mismatches in :{}",
            "  Index offset: {}, log offset: {}",
            lambda each: sorted(dict(each.offset_mismatches).items(), reverse=True),
        )
        yield from self._section(
            "Found timestamp mismatch in :{}",
            "  Index timestamp: {}, log timestamp: {}",
            lambda each: each.time_mismatches,
        )
        yield from self._section(
            "Found out of order timestamp in :{}",
            "  Index timestamp: {}, Previously indexed timestamp: {}",
            lambda each: each.unordered_times,
        )
        yield from self._section(
            "The following indexed offsets are not found in :{}",
            "Indexed offset: {}, found log offset: {}",
            lambda each: each.missing_offsets,
        )
        for name, gaps in _in_order(self.gaps):
            yield f"Non-consecutive offsets in {name}"
            yield from (
                f"  {before} is followed by {after}" for before, after in sorted(gaps.items())
            )

    def _section(
        self, title: str, line: str, choose: Callable[[Findings], Sequence[Pair]]
    ) -> Iterator[str]:
        chosen = {name: choose(found) for name, found in self.findings.items()}
        for name, pairs in _in_order({name: pairs for name, pairs in chosen.items() if pairs}):
            yield title.format(name)
            yield from (line.format(first, second) for first, second in pairs)


def _in_order(by_name: Mapping[str, Found]) -> list[tuple[str, Found]]:
    """Return the entries in the order of Java's hash table, which Kafka's tool keeps them in."""
    return [(name, by_name[name]) for name in hash_table_order(by_name)]
