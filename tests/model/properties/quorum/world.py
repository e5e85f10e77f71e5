"""A small model of a quorum whose voters change: what a leader sees of it, and what a step does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, combinations
from typing import TypeVar

from immutables import Map

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Circumstances,
    HandOver,
    RemoveVoter,
    Step,
    next_step,
)
from kvorum.metadata.cluster_image import ControllerRegistration
from kvorum.metadata.voters import TargetVoters, VoterKey

FETCH_TIMEOUT_MS = 2_000
RECENT_MS, LONG_AGO_MS = FETCH_TIMEOUT_MS - 1, FETCH_TIMEOUT_MS
LOG_END_OFFSET = 100
OLD_DISK, NEW_DISK = bytes([0xA0]) * 16, bytes([0xB0]) * 16
T = TypeVar("T")


def old(node_id: int) -> VoterKey:
    """The replica of a node on the disk that it has always had."""
    return VoterKey(node_id, OLD_DISK)


def new(node_id: int) -> VoterKey:
    """The replica of a node on a disk that has replaced the old one."""
    return VoterKey(node_id, NEW_DISK)


def registration(node_id: int) -> ControllerRegistration:
    return ControllerRegistration(node_id, bytes([node_id] * 16), False, (), Map())


@dataclass(frozen=True)
class World:
    """The voters, their leader, and the replicas that do not do what they should.

    `observers` are the replicas besides the voters that the leader has heard from. Every replica
    fetches unless it is `silent`, has caught up unless it is `lagging`, and its node is registered
    unless it is among the `strangers`.
    """

    voters: frozenset[VoterKey]
    leader: VoterKey
    observers: frozenset[VoterKey] = frozenset()
    silent: frozenset[VoterKey] = frozenset()
    lagging: frozenset[VoterKey] = frozenset()
    strangers: frozenset[int] = frozenset()
    refusals: Mapping[VoterKey, int] = field(default_factory=dict[VoterKey, int], hash=False)

    def __str__(self) -> str:
        voters = " ".join(
            f"{key.id}{'b' if key.directory_id == NEW_DISK else ''}"
            f"{'*' if key == self.leader else ''}{'-' if key in self.silent else ''}"
            for key in sorted(self.voters, key=lambda key: key.id)
        )
        return f"voters {voters}"

    def step_to(self, targets: TargetVoters) -> Step:
        return next_step(targets, _described(self), _circumstances(self))

    def after(self, step: Step) -> Iterator[World]:
        """Return the worlds that a step can lead to: any other voter that fetches may come to lead.

        What a leader refuses is checked here.
        """
        match step:
            case AddVoter():
                assert step.key.id not in {key.id for key in self.voters}, "DUPLICATE_VOTER"
                observers = self.observers - {step.key}
                yield replace(self, voters=self.voters | {step.key}, observers=observers)
            case RemoveVoter():
                assert step.key in self.voters, "VOTER_NOT_FOUND"
                observers = self.observers | {step.key}
                yield replace(self, voters=self.voters - {step.key}, observers=observers)
            case HandOver():
                for key in self.voters - {self.leader} - self.silent:
                    yield replace(self, leader=key)
            case _:
                return

    def has_fetching_majority(self) -> bool:
        return 2 * len(self.voters - (self.silent - {self.leader})) > len(self.voters)


@cache
def _described(world: World) -> QuorumDescription:
    def state(key: VoterKey) -> ReplicaState:
        age_ms = LONG_AGO_MS if key in world.silent else RECENT_MS
        return ReplicaState(key, LOG_END_OFFSET, 0 if key == world.leader else age_ms)

    def in_order(keys: Iterable[VoterKey]) -> tuple[ReplicaState, ...]:
        return tuple(state(key) for key in sorted(keys, key=lambda key: (key.id, str(key))))

    return QuorumDescription(
        leader_id=world.leader.id,
        kraft_version=1,
        may_change=True,
        log_end_offset=LOG_END_OFFSET,
        voters=in_order(world.voters),
        observers=in_order(world.observers),
    )


@cache
def _circumstances(world: World) -> Circumstances:
    nodes = {key.id for key in world.voters | world.observers} - world.strangers
    return Circumstances(
        controllers={node_id: registration(node_id) for node_id in nodes},
        fetch_timeout_ms=FETCH_TIMEOUT_MS,
        has_caught_up=lambda key: key not in world.lagging,
        progress_text=lambda _: "far from the end",
        refusals=world.refusals,
    )


@dataclass(frozen=True)
class Difference:
    """The voters by a plain reading of the target: KIP-642's three sets."""

    new: frozenset[VoterKey]
    leaving: frozenset[VoterKey]
    retained: frozenset[VoterKey]


def difference(world: World, wanted: frozenset[VoterKey]) -> Difference:
    return Difference(
        new=wanted - world.voters, leaving=world.voters - wanted, retained=wanted & world.voters
    )


def steps_left(world: World, wanted: frozenset[VoterKey]) -> int:
    """Return how many steps there are to go where nothing hinders them."""
    to_go = difference(world, wanted)
    return len(to_go.new) + len(to_go.leaving) + (world.leader in to_go.leaving)


def by_ids(keys: Iterable[VoterKey]) -> TargetVoters:
    """Return targets as AlterPartitionReassignments names them: without their directories."""
    return tuple(VoterKey(node_id) for node_id in sorted(key.id for key in keys))


def subsets(items: Iterable[T], *, least: int = 0) -> Iterator[frozenset[T]]:
    """Return every subset with at least so many members."""
    pool = list(items)
    sizes = (combinations(pool, size) for size in range(least, len(pool) + 1))
    return map(frozenset, chain.from_iterable(sizes))
