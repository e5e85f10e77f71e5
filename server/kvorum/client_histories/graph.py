"""A directed graph with kinds of edges: its strong components, and short ways in it."""

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

_UNSEEN: Final = 0
_ZERO: Final = array("I", [0])


class Graph:
    """Nodes from 0 on, and edges of kinds that are single bits, so that a sum names several."""

    def __init__(self, size: int, edges: Iterable[tuple[int, int, int]]) -> None:
        """Make a graph of `size` nodes from the kinds, sources and targets of its edges."""
        kinds = array("B")
        sources = array("I")
        targets = array("I")
        for kind, source, target in edges:
            kinds.append(kind)
            sources.append(source)
            targets.append(target)
        self.size: Final = size
        self._starts = _starts(size, sources)
        self._targets = _ZERO * len(targets)
        self._kinds = bytearray(len(targets))
        following = array("I", self._starts)
        for kind, source, target in zip(kinds, sources, targets, strict=True):
            place = following[source]
            following[source] = place + 1
            self._targets[place] = target
            self._kinds[place] = kind

    def edges_of(self, node: int, kinds: int) -> Iterator[tuple[int, int]]:
        """Yield the kind and target of each edge of a node, of the given kinds."""
        for place in range(self._starts[node], self._starts[node + 1]):
            if self._kinds[place] & kinds:
                yield self._kinds[place], self._targets[place]

    def part(self, nodes: Sequence[int]) -> "Graph":
        """Return the graph of some nodes, numbered by their places in `nodes`."""
        numbers = {node: number for number, node in enumerate(nodes)}
        return Graph(
            len(nodes),
            (
                (self._kinds[place], number, numbers[self._targets[place]])
                for node, number in numbers.items()
                for place in range(self._starts[node], self._starts[node + 1])
                if self._targets[place] in numbers
            ),
        )

    def components(self, kinds: int) -> Iterator[list[int]]:
        """Yield the strong components of more than one node, by edges of some kinds.

        This is Tarjan's algorithm with a stack in place of recursion.
        """
        search = _Search(self.size)
        for root in range(self.size):
            if search.numbers[root] != _UNSEEN:
                continue
            path = [(root, self._starts[root])]
            while path:
                node, place = path.pop()
                if search.numbers[node] == _UNSEEN:
                    search.enter(node)
                place = self._next_unseen(search, node, place, kinds)
                if place < self._starts[node + 1]:
                    # The edge is looked at again when its target is done.
                    path.append((node, place))
                    path.append((self._targets[place], self._starts[self._targets[place]]))
                elif search.lows[node] == search.numbers[node]:
                    component = search.leave(node)
                    if len(component) > 1:
                        yield component

    def _next_unseen(self, search: "_Search", node: int, place: int, kinds: int) -> int:
        """Return the next edge of a node that leads to an unseen one, or the end of its edges."""
        low = search.lows[node]
        end = self._starts[node + 1]
        while place < end:
            if self._kinds[place] & kinds:
                target = self._targets[place]
                if search.numbers[target] == _UNSEEN:
                    break
                if search.waiting[target]:
                    low = min(low, search.lows[target])
            place += 1
        search.lows[node] = low
        return place

    def way(self, start: int, end: int, kinds: int, free: int) -> list[int]:
        """Return a shortest way by edges of some kinds, with both of its ends, or an empty list.

        Edges from nodes of the number `free` and above have no length.
        """
        before = {start: start}
        waiting = deque([start])
        done: set[int] = set()
        while waiting:
            node = waiting.popleft()
            if node == end:
                return _way_to(end, before)
            if node in done:
                continue
            done.add(node)
            for _, target in self.edges_of(node, kinds):
                if node >= free and target not in done:
                    before[target] = node
                    waiting.appendleft(target)
                elif target not in before:
                    before[target] = node
                    waiting.append(target)
        return []


class _Search:
    """The state of Tarjan's algorithm: numbers from 1 on in the order of entering, and lows."""

    def __init__(self, size: int) -> None:
        self.numbers = _ZERO * size
        self.lows = _ZERO * size
        self.waiting = bytearray(size)
        self._stack = array("I")
        self._count = 0

    def enter(self, node: int) -> None:
        """Give a node its number."""
        self._count += 1
        self.numbers[node] = self._count
        self.lows[node] = self._count
        self.waiting[node] = True
        self._stack.append(node)

    def leave(self, node: int) -> list[int]:
        """Return the component that a node is the first one of."""
        component: list[int] = []
        while not component or component[-1] != node:
            component.append(self._stack.pop())
            self.waiting[component[-1]] = False
        return component


def _starts(size: int, sources: "array[int]") -> "array[int]":
    """Return where the edges of each node begin, and the end of all."""
    starts = _ZERO * (size + 1)
    for source in sources:
        starts[source + 1] += 1
    for node in range(size):
        starts[node + 1] += starts[node]
    return starts


def _way_to(end: int, before: dict[int, int]) -> list[int]:
    way = [end]
    while before[way[-1]] != way[-1]:
        way.append(before[way[-1]])
    return way[::-1]
