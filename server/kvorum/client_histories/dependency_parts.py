"""The dependencies within each part of a history, those of some parts at a time."""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from kvorum.client_histories.dependencies import WR, WW, Dependencies, Span
from kvorum.client_histories.history import History
from kvorum.client_histories.operation_pairs import PAIRS_IN_MEMORY_MAX, OperationPairs

OPERATIONS_AT_ONCE: Final = 1 << 19
"""The number of operations from which on the next parts wait, if there is a file."""
_ZERO: Final = array("I", [0])
Dependency: TypeAlias = tuple[int, int, int]
"""A kind, and the operations or nodes of which the second one depends on the first."""
Find: TypeAlias = Callable[[], Iterator[Dependency]]
"""A search that can be repeated."""


class PartDependencies:
    """The dependencies within each of some parts, by the numbers of nodes in that part."""

    def __init__(
        self, numbers: range, groups: "array[int]", nodes: "array[int]", find: Find
    ) -> None:
        """Sort dependencies by parts; `groups` has the part and `nodes` the node of operations."""
        self._first = numbers.start
        self._ends = _ZERO * (len(numbers) + 1)
        """The end of the dependencies of each part, in the columns of all."""
        for _, writer, _ in find():
            self._ends[groups[writer] - self._first + 1] += 1
        for number in range(len(numbers)):
            self._ends[number + 1] += self._ends[number]
        following = array("I", self._ends)
        self._kinds = bytearray(self._ends[-1])
        self._sources = _ZERO * self._ends[-1]
        self._targets = _ZERO * self._ends[-1]
        for kind, writer, dependent in find():
            part = groups[writer] - self._first
            place = following[part]
            following[part] = place + 1
            self._kinds[place] = kind
            self._sources[place] = nodes[writer]
            self._targets[place] = nodes[dependent]

    def of_part(self, number: int) -> Iterator[Dependency]:
        """Yield kind, source and target of each dependency of a part."""
        part = number - self._first
        for place in range(self._ends[part], self._ends[part + 1]):
            yield self._kinds[place], self._sources[place], self._targets[place]


class DependencyParts:
    """The parts of a history that may have circles; they have numbers from 1 on."""

    def __init__(self, history: History, dependencies: Dependencies, spans: Sequence[Span]) -> None:
        self._history = history
        self._dependencies = dependencies
        self._groups = _ZERO * len(history)
        """The number of the part that each operation is in, or 0."""
        self._nodes = _ZERO * len(history)
        sizes: list[int] = []
        for number, span in enumerate(spans, start=1):
            operations = dependencies.operations(span)
            sizes.append(len(operations))
            for node, operation in enumerate(operations):
                self._groups[operation] = number
                self._nodes[operation] = node
        self._runs = [range(1, len(spans) + 1)] if history.spool is None else _runs(sizes)

    def __iter__(self) -> Iterator[tuple[range, PartDependencies]]:
        finds = [lambda: self._dependencies.within(self._groups)]
        if len(self._runs) > 1:
            finds = self._by_run()
        for numbers, find in zip(self._runs, finds, strict=True):
            yield numbers, PartDependencies(numbers, self._groups, self._nodes, find)

    def _by_run(self) -> list[Find]:
        run_of = array("I", [0])
        for place, numbers in enumerate(self._runs):
            run_of.extend([place] * len(numbers))
        spool, kept_max = self._history.spool, PAIRS_IN_MEMORY_MAX // len(self._runs)
        pairs = [{kind: OperationPairs(spool, kept_max) for kind in (WW, WR)} for _ in self._runs]
        for kind, writer, dependent in self._dependencies.within(self._groups):
            pairs[run_of[self._groups[writer]]][kind].add(writer, dependent)
        return [partial(_of_kinds, of_run) for of_run in pairs]


def _of_kinds(pairs: Mapping[int, OperationPairs]) -> Iterator[Dependency]:
    for kind, of_kind in pairs.items():
        for first, second in of_kind:
            yield kind, first, second


def _runs(sizes: Sequence[int]) -> list[range]:
    """Return the numbers of parts that are looked at together, by the sizes of all."""
    runs: list[range] = []
    start = 1
    operations = 0
    for number, size in enumerate(sizes, start=1):
        operations += size
        if operations >= OPERATIONS_AT_ONCE or number == len(sizes):
            runs.append(range(start, number + 1))
            start = number + 1
            operations = 0
    return runs
