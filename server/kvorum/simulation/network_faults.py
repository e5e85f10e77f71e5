"""Faults of the network: what is lost, doubled, late, held back, cut off and broken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from kvorum.simulation.faults import Fault
from kvorum.simulation.network import USUAL_DELAY_MS, Route

if TYPE_CHECKING:
    from kvorum.simulation.world import World

_LOSS_MAX = 0.3
_DUPLICATION_MAX = 0.5
_DELAY_MS_MAX = 500.0


class NetworkFaults:
    """Strikes paths of a world's network."""

    def __init__(self, world: World) -> None:
        self._world = world

    def lose(self, fault: Fault, random: Random) -> None:
        """Lose some of the messages on some paths."""
        paths = [self._world.network.path(*route) for route in self._some_routes(random)]
        for path in paths:
            path.loss = fault.amount * _LOSS_MAX

        def undo() -> None:
            for path in paths:
                path.loss = 0.0

        self._world.events.after(fault.duration_ms, undo)

    def double(self, fault: Fault, random: Random) -> None:
        """Deliver some of the messages on some paths twice."""
        paths = [self._world.network.path(*route) for route in self._some_routes(random)]
        for path in paths:
            path.duplication = fault.amount * _DUPLICATION_MAX

        def undo() -> None:
            for path in paths:
                path.duplication = 0.0

        self._world.events.after(fault.duration_ms, undo)

    def delay(self, fault: Fault, random: Random) -> None:
        """Let messages on some paths take long, and overtake each other."""
        world = self._world
        world.count("F3")
        paths = [world.network.path(*route) for route in self._some_routes(random)]
        for path in paths:
            path.mean_delay_ms = max(USUAL_DELAY_MS, fault.amount**2 * _DELAY_MS_MAX)

        def undo() -> None:
            for path in paths:
                path.mean_delay_ms = USUAL_DELAY_MS

        world.events.after(fault.duration_ms, undo)

    def clog(self, fault: Fault, random: Random) -> None:
        """Hold back everything on one path."""
        world = self._world
        routes = self._some_routes(random)[:2]
        world.count("F4")
        for route in routes:
            world.network.clog(*route)

        def undo() -> None:
            for route in routes:
                world.network.unclog(*route)

        world.events.after(fault.duration_ms, undo)

    def cut_in_two(self, fault: Fault, random: Random) -> None:
        """Cut the nodes into two groups."""
        ids = self._ids()
        random.shuffle(ids)
        size = random.randint(1, max(1, len(ids) - 1))
        one, other = ids[:size], ids[size:]
        self._world.count("F5")
        self._cut([*_across(one, other), *_across(other, one)], fault.duration_ms)

    def cut_somehow(self, fault: Fault, random: Random) -> None:
        """Cut one direction, one node, or one node after the other."""
        ids = self._ids()
        self._world.count("F6")
        how = random.choice(("one way", "isolate", "deaf", "dumb", "swizzle"))
        victim = self._victim(fault, ids)
        others = [one for one in ids if one != victim]
        if how == "swizzle":
            self._swizzle(random, ids, fault.duration_ms)
            return
        routes: list[Route] = []
        if how == "one way" and others:
            routes = [(victim, random.choice(others))]
        if how in {"isolate", "deaf"}:
            routes += _across(others, [victim])
        if how in {"isolate", "dumb"}:
            routes += _across([victim], others)
        self._cut(routes, fault.duration_ms)

    def _swizzle(self, random: Random, ids: Sequence[int], duration_ms: int) -> None:
        """Cut nodes off one after the other, and let them back in another order."""
        for victim in ids:
            others = [one for one in ids if one != victim]
            routes = [*_across([victim], others), *_across(others, [victim])]
            begin_ms, length_ms = random.random() * duration_ms, random.random() * duration_ms
            self._world.events.after(begin_ms, partial(self._cut, routes, length_ms))

    def reset(self, fault: Fault, random: Random) -> None:
        """Break the connections between two nodes, at once or after they were half open."""
        world = self._world
        nodes = list(world.nodes.values())
        if len(nodes) < 2:
            return
        one, other = random.sample(nodes, 2)
        world.count("F7")
        world.trace.say(f"{one.node_id} and {other.node_id} lose their connections")
        if random.random() < 0.5:
            world.reset(one, other)
            return
        routes = [(one.node_id, other.node_id), (other.node_id, one.node_id)]
        self._cut(routes, fault.duration_ms)
        world.events.after(fault.duration_ms, lambda: world.reset(one, other))

    def _cut(self, routes: Iterable[Route], duration_ms: float) -> None:
        world = self._world
        if not world.is_safety_phase:
            return
        cut = [route for route in routes if not world.network.is_cut(*route)]
        world.trace.say(f"cut: {', '.join(f'{one}>{other}' for one, other in cut)}")
        for route in cut:
            world.network.cut(*route)

        def undo() -> None:
            world.trace.say(f"healed: {', '.join(f'{one}>{other}' for one, other in cut)}")
            for route in cut:
                world.network.heal(*route)

        world.events.after(duration_ms, undo)

    def _ids(self) -> list[int]:
        return list(self._world.nodes)

    def _victim(self, fault: Fault, ids: Sequence[int]) -> int:
        leader = self._world.leader()
        if leader is not None and fault.second % 5 < 2:
            return leader.node_id
        return ids[fault.first % len(ids)]

    def _some_routes(self, random: Random) -> list[Route]:
        """Return some of all routes between nodes, often all of them."""
        ids = self._ids()
        routes = [(one, other) for one in ids for other in ids if one != other]
        if random.random() < 0.4:
            return routes
        random.shuffle(routes)
        return routes[: random.randint(1, len(routes))] if routes else []


def _across(senders: Iterable[int], receivers: Sequence[int]) -> list[Route]:
    return [(sender, receiver) for sender in senders for receiver in receivers]
