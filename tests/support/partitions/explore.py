"""Exhausting a small space, breadth first, so that a counterexample is as short as can be.

Each check of an invariant has a name; `broken_after_record` and `broken_after_step` return the
names of those that do not hold.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.support.partitions.actions import Step, steps
from tests.support.partitions.space import Space, World, canonical, first_world

from kvorum.metadata.directory_ids import MIGRATING, UNASSIGNED
from kvorum.metadata.partition import RECOVERING, PartitionRegistration
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.primitives import Message

UNKNOWN = (MIGRATING, UNASSIGNED)


@dataclass(frozen=True, slots=True)
class Move:
    """One record with the worlds around it, and the step that wrote it."""

    step: Step
    before: World
    record: Message
    after: World


def broken_after_record(move: Move) -> Iterator[str]:
    """Yield what one record breaks."""
    old, new = move.before.partition, move.after.partition
    yield from _broken_form(new)
    if isinstance(move.record, PartitionChangeRecord):
        yield from _broken_epochs(move, move.record)
        yield from _broken_choice(move)
        yield from _broken_eligibility(move)
    elif (new.leader_epoch, new.leader, new.isr) != (old.leader_epoch, old.leader, old.isr):
        yield "only a change of the partition changes its leader and ISR"


def broken_after_step(step: Step, before: World, after: World) -> Iterator[str]:
    """Yield what a whole step leaves broken."""
    partition, brokers = after.partition, after.image.cluster.brokers
    if partition.has_leader:
        leader = brokers.get(partition.leader)
        if leader is None:
            yield "an unregistered broker never leads"
        elif leader.is_fenced:
            yield "a fenced broker never leads"
        elif leader.is_in_controlled_shutdown:
            yield "a broker that shuts down never leads"
        elif partition.directory(partition.leader) not in (*leader.directories, *UNKNOWN):
            yield "nobody leads from a directory that is offline"
    new_members = set(partition.isr) - set(before.partition.isr) - {partition.leader}
    if not all(map(after.image.cluster.is_broker_active, new_members & set(step.in_sync))):
        yield "only active brokers join the ISR"
    if not step.may_be_unclean and not new_members <= set(step.in_sync):
        yield "the ISR grows only by the leader's word"


def _broken_form(new: PartitionRegistration) -> Iterator[str]:
    replicas = set(new.replicas)
    if new.has_leader and new.leader not in new.isr:
        yield "the leader is in the ISR"
    if not set(new.isr) <= replicas:
        yield "the ISR is among the replicas"
    if not {*new.adding_replicas, *new.removing_replicas} <= replicas:
        yield "who comes and who goes is among the replicas"
    for many in (new.replicas, new.isr, new.elr, new.adding_replicas, new.removing_replicas):
        if len(set(many)) != len(many):
            yield "nobody is named twice"
    if not new.replicas:
        yield "there are replicas"
    if set(new.elr) & set(new.isr):
        yield "nobody is eligible and in sync"
    if len(new.directories) != len(new.replicas):
        yield "every replica has a directory"
    if new.leader_recovery_state == RECOVERING and len(new.isr) > 1:
        yield "a leader recovers alone"


def _broken_epochs(move: Move, record: PartitionChangeRecord) -> Iterator[str]:
    old, new = move.before.partition, move.after.partition
    if new.partition_epoch != old.partition_epoch + 1:
        yield "every change raises the partition epoch by one"
    if new.leader_epoch not in (old.leader_epoch, old.leader_epoch + 1):
        yield "the leader epoch rises by one at most"
    is_new_term = new.leader_epoch > old.leader_epoch
    removed = set(old.replicas) - set(new.replicas)
    if (new.leader != old.leader or removed) and not is_new_term:
        yield "a new leader, or a replica less, makes a new leader epoch"
    is_shrunk = bool(set(old.isr) - set(new.isr))
    bumps = move.before.image.metadata_version.bumps_leader_epoch_on_isr_shrink
    if is_new_term and new.leader == old.leader and not removed and not (is_shrunk and bumps):
        yield "a leader that stays keeps its epoch"
    if bumps and is_shrunk and not is_new_term:
        yield "before 3.6 an ISR that shrinks makes a new leader epoch"
    kept = new._replace(partition_epoch=old.partition_epoch, leader_epoch=old.leader_epoch)
    if kept == old and not is_new_term:
        yield "no record changes nothing"
    if record.isr is not None and tuple(record.isr) == old.isr:
        yield "no field says what is known"


def _is_safe(move: Move) -> bool:
    """Tell whether the leader after the record is one that had everything before it."""
    old = move.before.partition
    return move.after.partition.leader in {old.leader, *old.isr, *old.elr, *move.step.in_sync}


def _broken_choice(move: Move) -> Iterator[str]:
    """A replica that comes to lead has everything that was acknowledged, unless less is allowed."""
    old, new, step = move.before.partition, move.after.partition, move.step
    image = move.before.image
    if new.leader == old.leader or not new.has_leader:
        return
    is_unclean = not _is_safe(move)
    unclean_config = image.configs.of_topic(move.before.topic.name).get(
        "unclean.leader.election.enable"
    )
    is_last_known = image.features.is_elr_enabled and new.leader in old.last_known_elr
    if is_unclean and not (step.may_be_unclean or unclean_config == "true" or is_last_known):
        yield "nobody out of sync comes to lead where that is not allowed"
    # As in Kafka, the replica that an unclean cancellation falls back to counts as in sync.
    if is_unclean and not step.is_cancelling and new.leader_recovery_state != RECOVERING:
        yield "who comes to lead out of sync has to recover"
    if is_unclean and new.isr != (new.leader,):
        yield "who comes to lead out of sync is alone in the ISR"
    was_in_sync = new.leader in {*old.isr, *step.in_sync}
    if was_in_sync and new.leader_recovery_state > old.leader_recovery_state:
        yield "who was in sync need not recover"
    if step.lost == new.leader:
        yield "a broker that lost its log does not come to lead by that"


def _broken_eligibility(move: Move) -> Iterator[str]:
    if move.before.image.features.is_elr_enabled:
        yield from _broken_elr(move)
        yield from _broken_last_known(move)
        return
    if move.after.partition.elr:
        yield "without ELR nobody is eligible"
    if move.before.partition.isr and not move.after.partition.isr:
        yield "without ELR the ISR is never empty"


def _broken_last_known(move: Move) -> Iterator[str]:
    old, new = move.before.partition, move.after.partition
    if new.has_leader and new.leader != old.leader and new.last_known_elr:
        yield "the last leader is only known while there is none"
    # Remains of a time before the ELR was off stand in the way.
    last_known = old.last_known_elr or (old.leader,)
    if old.has_leader and not new.has_leader and new.last_known_elr != last_known:
        yield "the last leader is known while there is none"


def _broken_elr(move: Move) -> Iterator[str]:
    old, new = move.before.partition, move.after.partition
    image = move.before.image
    if set(new.elr) - set(old.isr) - set(old.elr):
        yield "only who was in sync becomes eligible"
    strangers = set(new.elr) - set(new.replicas) - (set(old.elr) - set(old.replicas))
    if not strangers <= set(old.replicas):
        yield "who is eligible is a replica"
    if move.step.lost in new.elr or move.step.lost in new.isr:
        yield "a broker that lost its log is neither eligible nor in sync"
    minimum = min(
        int(image.configs.of_topic(move.before.topic.name)["min.insync.replicas"]),
        len(old.replicas),
    )
    # A replica that came to lead out of the ELR leaves the others there until the next change.
    is_from_elr = new.leader != old.leader and new.leader in old.elr
    if set(new.elr) & set(new.replicas) and len(new.isr) >= minimum and not is_from_elr:
        yield "nobody is eligible while enough are in sync"
    is_recovering = new.leader_recovery_state > old.leader_recovery_state
    is_clean = not is_recovering and (not new.has_leader or _is_safe(move))
    gone = set(old.isr) - set(new.isr) - set(new.elr) - {move.step.lost}
    if len(new.isr) < minimum and is_clean and gone & set(new.replicas):
        yield "who leaves the ISR below its minimum stays eligible"


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
            found.kinds[" ".join(word for word in step.told.split() if word[0].isalpha())] += 1
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
        after = World(world.image.apply(message, version, world.next_offset), world.next_offset + 1)
        claims += broken_after_record(Move(step, world, message, after))
        world = after
    claims += broken_after_step(step, before, world)
    return world, claims
