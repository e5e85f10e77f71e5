"""The target voters (KIP-642), and the steps that a leader takes towards them.

Target voters are a record of the leader's log like any other. What to do about them is not written
here again: a leader of the model shows itself as a `QuorumDescription` and a `MetadataImage`, and
the project's own `Pursuit` decides. Whether the target voters may be cleared, and whether a change
by hand is admitted, are the project's own decisions as well.

What a decision depends on besides the logs is left open, so that every possibility is explored:

- Among replicas that are alike the decision goes by the ids. So every numbering of the nodes is
  tried; only because of that may states that differ in the numbers of the nodes count as one.
- It has no clock. Any of the replicas that have ever fetched in the leader's epoch may be those
  that have fetched of late; one that is dead has been so for longer than that.
- A target has caught up once it has all that was in the log when it could be looked at first.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import permutations
from typing import NamedTuple, TypeAlias

from immutables import Map
from tests.model.exploration.design import Bounds, Design
from tests.model.exploration.reconfiguration import may_change
from tests.model.exploration.replication import progress_of
from tests.model.exploration.state import (
    CANCELLED,
    LEADER,
    NODES_MAX,
    Entry,
    Node,
    State,
    bit,
    members,
    node_of,
    replica_of,
    targets_of,
    voters_of,
)

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Blocked,
    HandOver,
    Reached,
    RemoveVoter,
    Step,
)
from kvorum.controller.quorum_reassignment.pursuit import Pursuit
from kvorum.controller.quorum_reassignment.quorum_targets import clear_reached_targets
from kvorum.metadata.cluster_image import ClusterImage, ControllerRegistration
from kvorum.metadata.configs_image import CLUSTER_RESOURCE, ConfigsImage
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.voters import TARGET_VOTERS, VoterKey, target_voters_text
from kvorum.node.raft.translation.admission import refusal_of_change

ELECTION_TIMEOUT_MS, FETCH_TIMEOUT_MS = 1_000, 2_000
NOBODY_ID = -1
Names: TypeAlias = tuple[int, ...]
"""The id of each node, less one."""


class View(NamedTuple):
    """The facts that a leader's decision depends on.

    `ends` are the replicas that have fetched in the leader's epoch, with how far they are;
    `first_end` is where the log ended when they could be looked at first. Ends are only compared.
    """

    leader: int
    voters: int
    targets: int
    ends: tuple[tuple[int, int], ...]
    own_end: int
    first_end: int
    fetching: int
    may_change: bool
    node_count: int
    names_directories: bool
    knows_leader: bool


class Decided(NamedTuple):
    """A step: what it is, the voter that comes or goes, and the least that must be fetching."""

    verb: str
    replica: int
    fetching: int


def statements(bounds: Bounds, state: State, own: int) -> Iterator[tuple[tuple[str, int], Entry]]:
    """Yield the targets that an operator may state or cancel at a leader, and their records."""
    node = state.nodes[own]
    if (
        node.role != LEADER
        or not node.watermark
        or state.spent.target_changes >= bounds.target_changes
    ):
        return
    author, present = replica_of(own, node), targets_of(node.log)
    replicas = [replica_of(index, one) for index, one in enumerate(state.nodes)]
    for chosen in range(1, 1 << len(replicas)):
        targets = sum(bit(replicas[index]) for index in members(chosen))
        if targets != present:
            yield ("wants", targets), Entry(node.epoch, author, targets=targets)
    if present:
        yield ("wants", CANCELLED), Entry(node.epoch, author, targets=CANCELLED)


def decisions(design: Design, bounds: Bounds, state: State, own: int) -> Iterator[Decided]:
    """Yield the steps that a leader may take now towards the target voters that it knows."""
    node = state.nodes[own]
    voters, replica = voters_of(node.log, state.first_voters), replica_of(own, node)
    if node.role != LEADER or not voters & bit(replica):
        return
    for known in _known_logs(design, node):
        targets = _known_targets(design, node, known)
        if not targets:
            continue
        fetched = _fetched(state, own)
        first_end = _first_end(node, known)
        view = View(
            leader=replica,
            voters=voters,
            targets=targets,
            ends=tuple((one, progress_of(node, one)) for one in fetched),
            own_end=node.end,
            first_end=0 if design.takes_any_for_caught_up else first_end,
            fetching=0,
            may_change=may_change(design, node),
            node_count=len(state.nodes),
            names_directories=bounds.names_directories,
            knows_leader=not design.forgets_who_leads,
        )
        living = sum(bit(one) for one in fetched if not state.dead >> node_of(one) & 1)
        everybody = sum(map(bit, _replicas(state))) if design.takes_silent_for_fetching else 0
        steps = _least_fetching(_ranked(view), living=living, everybody=everybody)
        yield from (
            step for step in steps if step.verb != "hands over" or not design.never_hands_over
        )


@lru_cache(maxsize=1 << 16)
def _least_fetching(view: View, *, living: int, everybody: int) -> tuple[Decided, ...]:
    """Return every step, with each of the least sets of fetching replicas that lead to it.

    The decision takes those for fetching that are, and `everybody` that is taken for it by mistake.
    """
    steps: list[Decided] = []
    for fetching in _subsets(living):
        for verb, replica in _decided(view._replace(fetching=fetching | everybody)):
            same = [one for one in steps if (one.verb, one.replica) == (verb, replica)]
            if not any(one.fetching & fetching == one.fetching for one in same):
                steps.append(Decided(verb, replica, fetching))
    return tuple(steps)


def _known_logs(design: Design, node: Node) -> Iterator[Sequence[Entry]]:
    """Yield the part of its log that a leader acts on: what it knows to be committed."""
    if node.watermark:
        yield node.log if design.acts_on_uncommitted_targets else node.log[: node.watermark]
    elif design.acts_before_active:
        # It may have known any part of what was before its epoch to be committed.
        for end in range(1, _epoch_start(node) + 1):
            yield node.log[:end]


def _known_targets(design: Design, node: Node, known: Sequence[Entry]) -> int:
    if design.keeps_first_targets:
        return _first_of_a_row(known)[1]
    if design.forgets_targets_of_others:
        known = [entry for entry in known if entry.epoch == node.epoch]
    return targets_of(known)


def _first_of_a_row(log: Sequence[Entry]) -> tuple[int, int]:
    """Return the offset and the targets of the first target voters after there were none."""
    first = (0, 0)
    for offset, entry in enumerate(log):
        if entry.targets < 0:
            first = (0, 0)
        elif entry.targets and not first[1]:
            first = (offset, entry.targets)
    return first


def _first_end(node: Node, known: Sequence[Entry]) -> int:
    """Return the least end of the log at which the leader may have begun to follow targets.

    By then its epoch's first record was committed, and target voters were, which may be replaced by
    now.
    """
    return max(_epoch_start(node), _first_of_a_row(known)[0]) + 1


def _epoch_start(node: Node) -> int:
    return next(offset for offset, entry in enumerate(node.log) if entry.epoch == node.epoch)


def _replicas(state: State) -> list[int]:
    return [
        index + NODES_MAX * directory
        for index, node in enumerate(state.nodes)
        for directory in range(node.directory + 1)
    ]


def _fetched(state: State, own: int) -> list[int]:
    """Return the replicas that a leader knows the progress of."""
    node = state.nodes[own]
    others = [one for one in _replicas(state) if node_of(one) != own]
    return [one for one in others if progress_of(node, one)]


def _subsets(mask: int) -> list[int]:
    """Return all subsets of a mask, the smaller ones first."""
    subsets, part = [0], mask
    while part:
        subsets.append(part)
        part = (part - 1) & mask
    return sorted(subsets, key=int.bit_count)


def _ranked(view: View) -> View:
    """Return the same view with the smallest numbers for ends, for there to be few views."""
    ends = sorted({0, view.own_end, view.first_end, *(end for _, end in view.ends)})
    return view._replace(
        ends=tuple((one, ends.index(end)) for one, end in view.ends),
        own_end=ends.index(view.own_end),
        first_end=ends.index(view.first_end),
    )


@lru_cache(maxsize=1 << 18)
def _decided(view: View) -> frozenset[tuple[str, int]]:
    """Return every step that the project's own decision may be, with its replica."""
    found: set[tuple[str, int]] = set()
    for names in permutations(range(view.node_count)):
        step = _step(view, names)
        match step:
            case AddVoter():
                found.add(("adds voter", _replica(step.key, names)))
            case RemoveVoter():
                found.add(("removes voter", _replica(step.key, names)))
            case HandOver():
                found.add(("hands over", view.leader))
            case Reached():
                found.add(("clears the targets", view.leader))
            case Blocked():
                pass
    return frozenset(found)


def forget_decisions() -> None:
    """Forget what was decided, because something else decides from now on."""
    _decided.cache_clear()
    _least_fetching.cache_clear()


def _step(view: View, names: Names) -> Step:
    """Return the step that the project decides on, for nodes with these names."""
    pursuit = Pursuit(election_timeout_ms=ELECTION_TIMEOUT_MS, fetch_timeout_ms=FETCH_TIMEOUT_MS)
    image = _image(view.targets, names, names_directories=view.names_directories)
    quorum = _described(view, names)
    earlier = _described(view._replace(own_end=view.first_end), names)
    pursuit.decide(image, earlier, 0)
    decision = pursuit.decide(image, quorum, 0)
    assert decision is not None
    return decision.step


def _described(view: View, names: Names) -> QuorumDescription:
    ends = dict(view.ends)

    def state(replica: int) -> ReplicaState:
        key = _key(replica, names)
        if replica == view.leader:
            return ReplicaState(key, view.own_end, 0)
        if view.fetching >> replica & 1:
            return ReplicaState(key, ends.get(replica, view.own_end), 0)
        return ReplicaState(key, ends.get(replica), FETCH_TIMEOUT_MS if replica in ends else None)

    voters = [state(replica) for replica in members(view.voters)]
    observers = [state(replica) for replica in ends if not view.voters >> replica & 1]
    return QuorumDescription(
        leader_id=_key(view.leader, names).id if view.knows_leader else NOBODY_ID,
        kraft_version=1,
        may_change=view.may_change,
        log_end_offset=view.own_end,
        voters=tuple(sorted(voters)),
        observers=tuple(sorted(observers)),
    )


@lru_cache(maxsize=1 << 12)
def _image(targets: int, names: Names, *, names_directories: bool) -> MetadataImage:
    """Return the metadata with target voters, or without, in which every node has registered."""
    configs = ConfigsImage()
    if targets:
        text = _text(targets, names, names_directories=names_directories)
        configs = ConfigsImage(Map({CLUSTER_RESOURCE: Map({TARGET_VOTERS: text})}))
    registrations = (
        ControllerRegistration(name + 1, bytes([name + 1] * 16), False, (), Map()) for name in names
    )
    cluster = ClusterImage(controllers=Map({one.id: one for one in registrations}))
    return MetadataImage(configs=configs, cluster=cluster)


def _text(targets: int, names: Names, *, names_directories: bool) -> str:
    keys = sorted(_key(replica, names) for replica in members(targets))
    return target_voters_text(key if names_directories else VoterKey(key.id) for key in keys)


def _key(replica: int, names: Names) -> VoterKey:
    return VoterKey(names[node_of(replica)] + 1, bytes([replica // NODES_MAX + 1] * 16))


def _replica(key: VoterKey, names: Names) -> int:
    assert key.directory_id is not None
    return names.index(key.id - 1) + NODES_MAX * (key.directory_id[0] - 1)


def may_clear(design: Design, node: Node, *, reached: int, node_count: int) -> bool:
    """Return whether a leader writes the end of the target voters that it has found reached.

    What it looks at is all that it has written, committed or not.
    """
    names = tuple(range(node_count))
    image = _image(targets_of(node.log), names, names_directories=True)
    text = _text(reached, names, names_directories=True)
    return design.clears_replaced_targets or bool(clear_reached_targets(image, text))


def is_admitted(design: Design, bounds: Bounds, state: State, own: int, changed: int) -> bool:
    """Return whether a leader admits a change by hand to the voters `changed`."""
    node, names = state.nodes[own], tuple(range(len(state.nodes)))
    targets = targets_of(node.log[: node.watermark])
    if not targets or design.admits_any_change:
        return True
    image = _image(targets, names, names_directories=bounds.names_directories)
    for replica in members(changed ^ voters_of(node.log, state.first_voters)):
        key = _key(replica, names)
        assert key.directory_id is not None
        adds = bool(changed & bit(replica))
        if refusal_of_change(image, key.id, key.directory_id, adds=adds) is not None:
            return False
    return True
