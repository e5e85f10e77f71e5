"""Exhausting a small space, breadth first, so that a counterexample is as short as can be."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.support.partitions.actions import Step, steps
from tests.support.partitions.invariants import Move, broken_after_record, broken_after_step
from tests.support.partitions.space import Space, World, canonical, first_world

from kvorum.metadata.partition import PartitionRegistration


@dataclass(frozen=True, slots=True)
class Broken:
    """The broken property, and the steps that lead there."""

    claim: str
    way: tuple[str, ...]
    partition: PartitionRegistration


@dataclass(slots=True)
class Explored:
    """The number of states; `is_exhausted` is whether that is everything there is."""

    states: int = 0
    transitions: int = 0
    is_exhausted: bool = False
    broken: Broken | None = None
    kinds: Counter[str] = field(default_factory=Counter[str])


@dataclass(frozen=True, slots=True)
class Node:
    """A world that was found, with the way to it."""

    world: World
    told: str = ""
    parent: Node | None = None

    def way(self) -> tuple[str, ...]:
        told: list[str] = []
        node: Node | None = self
        while node is not None and node.told:
            told.append(node.told)
            node = node.parent
        return tuple(reversed(told))


Visit = Callable[[World, Step, World], Iterator[str]]


def explore(space: Space, *, states_max: int | None = None, visit: Visit | None = None) -> Explored:
    """See every world of `space` up to symmetry; `visit` may check more of every transition."""
    found = Explored()
    first = first_world(space)
    met = {canonical(first)}
    waiting = deque([Node(first)])
    while waiting:
        node = waiting.popleft()
        found.states += 1
        for step in steps(space, node.world):
            found.transitions += 1
            found.kinds[_kind(step.told)] += 1
            after, claims = taken(node.world, step)
            claims += list(visit(node.world, step, after)) if visit else []
            following = Node(after, step.told, node)
            if claims:
                found.broken = Broken(claims[0], following.way(), after.partition)
                return found
            key = canonical(after)
            if key not in met:
                met.add(key)
                waiting.append(following)
        if states_max is not None and found.states >= states_max and waiting:
            return found
    found.is_exhausted = True
    return found


def taken(before: World, step: Step) -> tuple[World, list[str]]:
    """Return the world after a step, and what its records broke on the way."""
    claims: list[str] = []
    world = before
    for message, version in step.records:
        message.encode(version)
        image = world.image.apply(message, version, world.next_offset)
        after = World(image, world.next_offset + 1)
        claims += broken_after_record(Move(step, world, message, after))
        world = after
    claims += broken_after_step(step, before, world)
    return world, claims


def _kind(told: str) -> str:
    return " ".join(word for word in told.split() if word[0].isalpha())
