"""The anomalies of order among operations: circles of dependencies, and of orders with them."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise, product
from typing import Final, NamedTuple, TypeAlias

from kvorum.client_histories.anomalies import Anomaly, Legality, Settings
from kvorum.client_histories.dependencies import WR, WW, Dependencies, Span
from kvorum.client_histories.dependency_parts import Dependency, DependencyParts
from kvorum.client_histories.findings import Facts, Findings, Strip
from kvorum.client_histories.graph import Graph
from kvorum.client_histories.history import INFO, History
from kvorum.client_histories.key_entries import NO_OFFSET, POLLED, SENT, KeyEntries
from kvorum.client_histories.key_log import KeyLog

PROCESS: Final = 4
"""A dependency: the process of the first operation did the second one next."""
REALTIME: Final = 8
"""A dependency: the first operation had completed before the second one was invoked."""
ALL: Final = WW | WR | PROCESS | REALTIME
_ANCHORS_MAX: Final = 100
"""The number of edges of a component through which a shortest circle is looked for."""
_OPERATIONS_SHOWN_MAX: Final = 20
_STRIPS_MAX: Final = 4
"""The number of edges of a circle for which the log is shown: each log is built again for it."""


Circle: TypeAlias = Sequence[tuple[int, int]]
"""The operations of a circle, each with the kind of the edge to the next one."""


class _Use(NamedTuple):
    """A dependency: a key, and the offsets and values of the two operations there."""

    key: KeyEntries
    sent: tuple[int, int]
    used: tuple[int, int]


class _Level(NamedTuple):
    """A kind of circle: its name, the kinds of its edges, the one that it needs, and its weight."""

    anomaly: Anomaly
    kinds: int
    needed: int
    legality: Legality


LEVELS: Final = tuple(
    level
    for g0, g1c, orders in (
        (Anomaly.G0, Anomaly.G1C, 0),
        (Anomaly.G0_PROCESS, Anomaly.G1C_PROCESS, PROCESS),
        (Anomaly.G0_REALTIME, Anomaly.G1C_REALTIME, PROCESS | REALTIME),
    )
    for level in (
        _Level(g0, WW | orders, WW, Legality.NOT_ISOLATED),
        _Level(g1c, WR | orders, WR, Legality.NEVER),
        _Level(g1c, WW | WR | orders, WR, Legality.NOT_ISOLATED),
    )
)
"""The kinds of circles, each after those that are part of it."""


class CycleAnomalies:
    """The search for circles: first the parts of a history that may have some, then within them."""

    def __init__(
        self,
        history: History,
        committed: bytearray,
        dependencies: Dependencies,
        settings: Settings,
        findings: Findings,
    ) -> None:
        self._history = history
        self._committed = committed
        self._dependencies = dependencies
        self._settings = settings
        self._findings = findings

    def find(self) -> None:
        """Add all circles to the findings."""
        spans = self._dependencies.spans()
        if not spans:
            return
        for numbers, dependencies in DependencyParts(self._history, self._dependencies, spans):
            for number in numbers:
                self._find_in_part(spans[number - 1], dependencies.of_part(number))

    def _find_in_part(self, span: Span, dependencies: Iterator[Dependency]) -> None:
        operations = self._dependencies.operations(span)
        graph = Graph(
            2 * len(operations),
            chain(
                dependencies,
                _process_edges(self._history, operations),
                _realtime_edges(self._history, operations),
            ),
        )
        for component in graph.components(ALL):
            nodes = sorted(component)
            inner = [operations[node] for node in nodes if node < len(operations)]
            self._find_in_component(graph.part(nodes), inner)

    def _find_in_component(self, graph: Graph, operations: Sequence[int]) -> None:
        """Find the circles of a component, whose first nodes are operations."""
        never: set[int] = set()
        """The nodes of circles that are never legal."""
        reported: dict[int, set[int]] = {WW: set(), WR: set()}
        """The nodes of all circles, those of writes alone and the others."""
        for level in LEVELS:
            is_never = level.legality is Legality.NEVER
            passed = never if is_never else reported[level.needed]
            for component in graph.components(level.kinds):
                if not passed.isdisjoint(component):
                    continue
                nodes = sorted(component)
                size = sum(node < len(operations) for node in nodes)
                circle = _circle(graph.part(nodes), level, size)
                if not circle:
                    continue
                reported[level.needed].update(component)
                if is_never:
                    never.update(component)
                self._add(level, [(operations[nodes[one]], kind) for one, kind in circle])

    def _add(self, level: _Level, circle: Circle) -> None:
        is_read_committed = self._settings.is_read_committed
        is_dirty = level.legality is Legality.NEVER and not is_read_committed
        self._findings.add(
            level.anomaly,
            Legality.UNCOMMITTED if is_dirty else level.legality,
            lambda: Facts(
                "; ".join(self._sentences(circle)),
                [operation for operation, _ in circle][:_OPERATIONS_SHOWN_MAX],
                tuple(self._strips(circle)),
            ),
        )

    def _sentences(self, circle: Circle) -> Iterator[str]:
        """Yield a sentence for each edge of a circle."""
        for source, kind, target in _edges(circle):
            line = self._line(source)
            other = self._line(target)
            use = self._use(source, kind, target)
            if kind == WR and use is not None:
                yield f"{line} sent value {use.sent[1]} of key {use.key.name}, polled by {other}"
            elif kind == WW and use is not None:
                yield f"{line} sent to key {use.key.name} before {other}"
            elif kind == PROCESS:
                yield f"{line} came in its process before {other}"
            else:
                yield f"{line} had completed before the invocation of {other}"

    def _strips(self, circle: Circle) -> Iterator[Strip]:
        """Yield the log of the key of each dependency, around what makes it one."""
        for source, kind, target in _edges(circle)[:_STRIPS_MAX]:
            use = self._use(source, kind, target)
            if use is not None:
                log = KeyLog(self._history, use.key, self._committed)
                places = [log.index_of_send(*one) for one in (use.sent, use.used)]
                offsets = sorted({log.offsets[place] for place in places if place is not None})
                yield Strip(log.name, log.strip(*offsets), tuple(offsets))

    def _line(self, operation: int) -> str:
        history = self._history
        return f"line {history.completed_lines[operation] or history.invoked_lines[operation]}"

    def _use(self, source: int, kind: int, target: int) -> _Use | None:
        """Return the key and the values by which an operation depends on another one."""
        if kind not in {WW, WR}:
            return None
        mark = POLLED if kind == WR else SENT
        for key in self._history.keys:
            sent = [one[1:] for one in key.of_operation(source) if one[0] == SENT]
            used = [one[1:] for one in key.of_operation(target) if one[0] == mark]
            for one, other in product(sent, used):
                is_before = NO_OFFSET in {one[0], other[0]} or one[0] < other[0]
                if is_before if kind == WW else one[1] == other[1]:
                    return _Use(key, one, other)
        return None


def _edges(circle: Circle) -> list[tuple[int, int, int]]:
    """Return source, kind and target of each edge of a circle."""
    following = [*circle[1:], circle[0]]
    return [
        (source, kind, target)
        for (source, kind), (target, _) in zip(circle, following, strict=True)
    ]


def _process_edges(history: History, operations: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the edges from each operation to the next one of its process."""
    last: dict[int, int] = {}
    for node in sorted(
        range(len(operations)), key=lambda one: history.invoked_lines[operations[one]]
    ):
        process = history.processes[operations[node]]
        if process in last:
            yield PROCESS, last[process], node
        last[process] = node


def _realtime_edges(history: History, operations: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield edges that lead from each operation to those that were invoked after its completion.

    To have few of them, they go by way of a chain of moments, one for each completion, which are
    nodes as well: those after the operations.
    """
    size = len(operations)
    done = [node for node in range(size) if history.outcomes[operations[node]] != INFO]
    lines = [history.completed_lines[operations[node]] for node in done]
    for moment, node in enumerate(done, start=size):
        yield REALTIME, node, moment
        if moment > size:
            yield REALTIME, moment - 1, moment
    for node in range(size):
        earlier = bisect_left(lines, history.invoked_lines[operations[node]])
        if earlier:
            yield REALTIME, size + earlier - 1, node


def _circle(graph: Graph, level: _Level, size: int) -> list[tuple[int, int]]:
    """Return a short circle of operations in a component, each with the kind of its edge.

    The first `size` nodes are operations. The list is empty where no edge of the needed kind is.
    """
    anchors = (
        (source, target)
        for source in range(size)
        for _, target in graph.edges_of(source, level.needed)
    )
    shortest: list[int] = []
    for source, target in islice(anchors, _ANCHORS_MAX):
        way = graph.way(target, source, level.kinds, size)
        if not shortest or _length(way, size) < _length(shortest, size):
            shortest = way
    return _with_kinds(graph, shortest, level, size) if shortest else []


def _length(way: list[int], size: int) -> int:
    return sum(node < size for node in way)


def _with_kinds(graph: Graph, way: list[int], level: _Level, size: int) -> list[tuple[int, int]]:
    """Return the operations of a circle, from its needed edge on, with the kinds of its edges."""
    steps: list[tuple[int, int]] = [(way[-1], level.needed)]
    for source, target in pairwise(way):
        if source < size:
            kinds = (kind for kind, to in graph.edges_of(source, level.kinds) if to == target)
            steps.append((source, min(kinds)))
    return steps
