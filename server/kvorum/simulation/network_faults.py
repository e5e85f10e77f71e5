"""The faults of the network: lost, doubled, late and held messages, cuts, broken connections."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from random import Random

from kvorum.simulation.fault_ratios import RATIOS, strikes_leader
from kvorum.simulation.faults import Fault, FaultKind
from kvorum.simulation.network import HEALTHY, Route
from kvorum.simulation.quorum import SimulatedQuorum

_DELAY_MS_MAX = 500.0


class NetworkFaults:
    """The injector of faults on paths of a world's network."""

    def __init__(self, quorum: SimulatedQuorum) -> None:
        self._quorum = quorum
        self._around = quorum.around

    def lose(self, fault: Fault, random: Random) -> None:
        """Lose some of the messages on some paths."""
        self._change_paths(fault, random, "loss", fault.amount * RATIOS.loss_max)

    def double(self, fault: Fault, random: Random) -> None:
        """Deliver some of the messages on some paths twice."""
        self._change_paths(fault, random, "duplication", fault.amount * RATIOS.duplication_max)

    def delay(self, fault: Fault, random: Random) -> None:
        """Delay messages on some paths, so that they overtake each other."""
        self._around.faults[FaultKind.LATE_MESSAGES] += 1
        delay_ms = max(HEALTHY.mean_delay_ms, fault.amount**2 * _DELAY_MS_MAX)
        self._change_paths(fault, random, "mean_delay_ms", delay_ms)

    def _change_paths(self, fault: Fault, random: Random, name: str, value: float) -> None:
        """Give some paths another value of a condition, until the fault's time is over."""
        network = self._around.network
        routes = self._some_routes(random)

        def change(route: Route, changed: float) -> None:
            path = network.path(*route)
            path.conditions = replace(path.conditions, **{name: changed})

        def undo() -> None:
            for route in routes:
                change(route, getattr(network.usual(route), name))

        for route in routes:
            change(route, value)
        self._around.events.after(fault.duration_ms, undo)

    def clog(self, fault: Fault, random: Random) -> None:
        """Hold back every message on one or two paths."""
        around = self._around
        routes = self._some_routes(random)[:2]
        around.faults[FaultKind.CLOGGED_PATH] += 1
        for route in routes:
            around.network.clog(*route)

        def undo() -> None:
            for route in routes:
                around.network.unclog(*route)

        around.events.after(fault.duration_ms, undo)

    def cut_in_two(self, fault: Fault, random: Random) -> None:
        """Cut the nodes into two groups."""
        ids = self._ids()
        random.shuffle(ids)
        size = random.randint(1, max(1, len(ids) - 1))
        one, other = ids[:size], ids[size:]
        self._around.faults[FaultKind.PARTITION] += 1
        self.separate(one, other, fault.duration_ms)

    def separate(self, one: Sequence[int], other: Sequence[int], duration_ms: float) -> None:
        """Cut two groups of nodes off from each other for a while."""
        self._cut([*_across(one, other), *_across(other, one)], duration_ms)

    def cut_somehow(self, fault: Fault, random: Random) -> None:
        """Cut one direction, one node, or one node after the other."""
        ids = self._ids()
        self._around.faults[FaultKind.CUT_PATHS] += 1
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

    def isolate(self, victims: Sequence[int], duration_ms: float) -> None:
        """Cut some nodes off from all others for a while, each other included."""
        self._around.faults[FaultKind.CUT_PATHS] += 1
        cut_off = [route for route in self._routes() if not set(route).isdisjoint(victims)]
        self._cut(cut_off, duration_ms)

    def _swizzle(self, random: Random, ids: Sequence[int], duration_ms: int) -> None:
        """Cut nodes off one after the other, and reconnect them in another order."""
        for victim in ids:
            others = [one for one in ids if one != victim]
            begin_ms, length_ms = random.random() * duration_ms, random.random() * duration_ms
            self._around.events.after(begin_ms, partial(self.separate, [victim], others, length_ms))

    def reset(self, fault: Fault, random: Random) -> None:
        """Break the connections between two nodes, at once or after they were half open."""
        around, quorum = self._around, self._quorum
        nodes = list(quorum.nodes.values())
        if len(nodes) < 2:
            return
        one, other = random.sample(nodes, 2)
        around.faults[FaultKind.BROKEN_CONNECTION] += 1
        around.trace.say(f"{one.node_id} and {other.node_id} lose their connections")
        if random.random() < RATIOS.reset_at_once:
            quorum.reset(one, other)
            return
        self.separate([one.node_id], [other.node_id], fault.duration_ms)
        around.events.after(fault.duration_ms, lambda: quorum.reset(one, other))

    def _cut(self, routes: Iterable[Route], duration_ms: float) -> None:
        around = self._around
        if not self._quorum.is_safety_phase:
            return
        cut = [route for route in routes if not around.network.is_cut(*route)]
        around.trace.say(f"cut: {', '.join(f'{one}>{other}' for one, other in cut)}")
        for route in cut:
            around.network.cut(*route)

        def undo() -> None:
            around.trace.say(f"healed: {', '.join(f'{one}>{other}' for one, other in cut)}")
            for route in cut:
                around.network.heal(*route)

        around.events.after(duration_ms, undo)

    def _ids(self) -> list[int]:
        return list(self._quorum.nodes)

    def _victim(self, fault: Fault, ids: Sequence[int]) -> int:
        leader = self._quorum.leader()
        if leader is not None and strikes_leader(fault):
            return leader.node_id
        return ids[fault.first % len(ids)]

    def _routes(self) -> list[Route]:
        ids = self._ids()
        return [(one, other) for one in ids for other in ids if one != other]

    def _some_routes(self, random: Random) -> list[Route]:
        """Return some of all routes between nodes, often all of them."""
        routes = self._routes()
        if random.random() < RATIOS.all_routes:
            return routes
        random.shuffle(routes)
        return routes[: random.randint(1, len(routes))] if routes else []


def _across(senders: Iterable[int], receivers: Sequence[int]) -> list[Route]:
    return [(sender, receiver) for sender in senders for receiver in receivers]
