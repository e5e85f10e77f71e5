"""The target voters and the steps towards them: P30, P31, P32, and L9 once faults stopped.

Nothing here is taken from the code under test but what it did: the target voters are read from the
committed records, and who fetches from the requests that arrived.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kvorum.controller.quorum_reassignment.next_step import AddVoter, HandOver, Reached, RemoveVoter
from kvorum.metadata.configs_image import CLUSTER_RESOURCE
from kvorum.metadata.record_frame import decode_record
from kvorum.metadata.voters import (
    TARGET_VOTERS,
    TargetVoters,
    VoterKey,
    parse_target_voters,
    target_voters_text,
)
from kvorum.node.raft.listener import CommittedBatch
from kvorum.raft import ReplicaKey
from kvorum.raft.roles import Leader
from kvorum.raft.voter_set import VoterSet
from kvorum.simulation.application import is_record
from kvorum.simulation.properties.catalogue import L9, P30, P31, P32, Checks
from kvorum.simulation.properties.node_facts import NodeMemory, ObservedNode
from kvorum.simulation.properties.timeliness import Timeliness
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from kvorum.wire.primitives import Message

IDLE_MS_MAX = 7_000.0
"""The longest time without a step towards targets that can be reached, once faults have stopped and
all have caught up: longer than the longest fetch timeout and request that was under way."""
Step: TypeAlias = AddVoter | RemoveVoter | HandOver | Reached


@dataclass(frozen=True, slots=True)
class _Split:
    """The voters and the targets as a plain reading of the target voters sorts them."""

    coming_count: int
    leaving: tuple[ReplicaKey, ...]


class Reassignments:
    """The target voters that are committed in a world or may still be, and the steps."""

    def __init__(self, checks: Checks, timeliness: Timeliness) -> None:
        self._checks = checks
        self._timeliness = timeliness
        self._offsets: list[int] = []
        self._texts: list[str | None] = []
        self._read_end = 0
        self._uncommitted = Counter[TargetVoters]()
        # The target voters that a leader last found reached. It stays so until the voters change:
        # others may be stated, and it again, before the leader clears it.
        self._reached: str | None = None
        self._is_cancel_asked = False
        self._state: tuple[object, ...] = ()
        self._advanced_ms = 0.0
        self.counts = Counter[str]()
        """The counts of target voters stated, replaced, cancelled and reached, and of steps."""
        self.hand_over_count = 0

    # --- target voters ---

    def asked_for(self, targets: TargetVoters | None) -> None:
        """Note target voters that a client asks for; they may be committed later, or never."""
        if targets is not None:
            self._uncommitted[targets] += 1
        else:
            self._is_cancel_asked = True

    def refused(self, targets: TargetVoters | None) -> None:
        """Note that target voters were refused, so that they will not be committed."""
        if targets is not None:
            self._uncommitted[targets] -= 1

    def possible_targets(self) -> Iterator[TargetVoters]:
        """Yield the target voters that are in force, and those that may come into force."""
        if self.recorded is not None:
            yield parse_target_voters(self.recorded)
        yield from (targets for targets, count in self._uncommitted.items() if count > 0)

    @property
    def recorded(self) -> str | None:
        """The target voters that were committed last."""
        return self._texts[-1] if self._texts else None

    def take_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Read the target voters in committed batches that some state machine gets."""
        for batch in batches:
            if batch.base_offset < self._read_end:
                continue
            self._read_end = batch.last_offset + 1
            for index, value in enumerate(batch.values):
                if is_record(value):
                    self._take_record(batch.base_offset + index, value)

    def _take_record(self, offset: int, value: bytes) -> None:
        record, _ = decode_record(value)
        if not isinstance(record, ConfigRecord) or record.name != TARGET_VOTERS:
            return
        assert (record.resource_type, record.resource_name) == CLUSTER_RESOURCE
        before, after = self.recorded, record.value
        is_reached = self._reached == before
        self._offsets.append(offset)
        self._texts.append(after)
        if after is not None:
            self._uncommitted[parse_target_voters(after)] -= 1
            self.counts["target voters stated" if before is None else "target voters replaced"] += 1
        elif before is not None:
            text = f"the target voters {before} end at {offset}, neither reached nor cancelled"
            self._checks.demand(P31, text, holds=is_reached or self._is_cancel_asked)
            self.counts["target voters reached" if is_reached else "target voters cancelled"] += 1

    def targets_before(self, offset: int) -> str | None:
        """Return the last target voters that were committed below an offset."""
        index = bisect_left(self._offsets, offset)
        return self._texts[index - 1] if index else None

    def check_known(self, memory: NodeMemory, text: str | None, next_offset: int) -> None:
        """Demand that a node which has applied all below an offset knows the target voters: P30."""
        if next_offset > self._read_end:
            # A snapshot covers more than any state machine got in batches.
            return
        recorded = self.targets_before(next_offset)
        message = (
            f"{memory.name} takes {text} for the target voters at {next_offset}, not {recorded}"
        )
        self._checks.demand(P30, message, holds=text == recorded)

    # --- steps ---

    def step_taken(
        self, memory: NodeMemory, text: str, step: Step, *, next_offset: int, now_ms: float
    ) -> None:
        """Check a step that a leader takes, right before it does: P31, P32."""
        core = memory.node.core
        assert core is not None
        recorded = self.targets_before(next_offset)
        message = (
            f"{memory.name} works towards {text}, recorded at {next_offset} is {recorded}: {step}"
        )
        self._checks.demand(P31, message, holds=text == recorded)
        known, latest = core.high_watermark, core.history.voters_offset
        role = core.role
        is_settled = (
            isinstance(role, Leader)
            and known is not None
            and role.epoch_start_offset < known
            and (latest is None or latest < known)
        )
        message = f"{memory.name} would {step} before {latest} is committed, with {known}"
        self._checks.demand(P31, message, holds=is_settled)
        voters, targets = core.history.voters, parse_target_voters(text)
        message = (
            f"{memory.name} with voters {_named(voters)} and the target voters {text} would {step}"
        )
        self._checks.demand(P31, message, holds=_leads_there(step, voters, targets))
        if isinstance(step, RemoveVoter | HandOver):
            self._check_removal(memory, step, voters, message=message, now_ms=now_ms)
        if isinstance(step, HandOver):
            leaving = _split(voters, targets).leaving
            self._checks.demand(P32, message, holds=leaving == (memory.key,))
            self.hand_over_count += 1
        self._reached = recorded if isinstance(step, Reached) else None

    def change_admitted(self, memory: NodeMemory, request: Message, next_offset: int) -> None:
        """Demand that a change by hand does not lead away from the target voters: P31."""
        recorded = self.targets_before(next_offset)
        if recorded is None or not isinstance(
            request, AddRaftVoterRequest | RemoveRaftVoterRequest
        ):
            return
        is_addition = isinstance(request, AddRaftVoterRequest)
        key = ReplicaKey(request.voter_id, request.voter_directory_id)
        targets = parse_target_voters(recorded)
        verb = "add" if is_addition else "remove"
        text = f"{memory.name} lets {verb} {key.id} by hand while the target voters are {recorded}"
        self._checks.demand(P31, text, holds=_is_wanted(key, targets) == is_addition)
        self._reached = None

    def _check_removal(
        self,
        memory: NodeMemory,
        step: RemoveVoter | HandOver,
        voters: VoterSet,
        *,
        message: str,
        now_ms: float,
    ) -> None:
        """Demand that a majority of the rest fetches, and the leader does not remove itself."""
        gone = memory.node.node_id
        if isinstance(step, RemoveVoter):
            self._checks.demand(P32, message, holds=step.key.id != memory.node.node_id)
            gone = step.key.id
        rest = [voter.key for voter in voters.voters if voter.key.id != gone]
        fetching = [
            key
            for key in rest
            if key == memory.key or self._timeliness.has_fetched(memory, key, now_ms)
        ]
        message = (
            f"{message}: of {[key.id for key in rest]} only {[key.id for key in fetching]} fetch"
        )
        self._checks.demand(P32, message, holds=2 * len(fetching) > len(rest))

    # --- once faults have stopped ---

    def begin_calm(self, now_ms: float) -> None:
        """Note that the quorum has recovered: from now on target voters must be worked on."""
        self._advanced_ms = now_ms

    def look(
        self, now_ms: float, nodes: Sequence[ObservedNode], leader: ObservedNode | None
    ) -> None:
        """Demand that target voters are worked on, unless a target is missing or unclear: L9."""
        core = None if leader is None else leader.core
        voters = VoterSet() if core is None else core.history.voters
        state = (self.recorded, len(self._texts), voters, None if core is None else core.role.epoch)
        if state != self._state:
            self._state, self._advanced_ms = state, now_ms
            if self.recorded is None and self._texts:
                self._checks.held(L9)
        if self.recorded is None or not _can_be_reached(self.recorded, voters, nodes):
            self._advanced_ms = now_ms
            return
        idle_ms = now_ms - self._advanced_ms
        text = f"no step towards {self.recorded} for {idle_ms:.0f} ms, voters {_named(voters)}"
        self._checks.demand(L9, text, holds=idle_ms <= IDLE_MS_MAX)


def _split(voters: VoterSet, targets: TargetVoters) -> _Split:
    leaving = tuple(voter.key for voter in voters.voters if not _is_wanted(voter.key, targets))
    staying = len(voters.voters) - len(leaving)
    return _Split(len(targets) - staying, leaving)


def _is_wanted(key: ReplicaKey, targets: TargetVoters) -> bool:
    return any(
        target.id == key.id and target.directory_id in {None, key.directory_id}
        for target in targets
    )


def _leads_there(step: Step, voters: VoterSet, targets: TargetVoters) -> bool:
    """Return whether a step leads to the targets, and keeps the sizes that KIP-642 wants."""
    split = _split(voters, targets)
    adds = split.coming_count >= len(split.leaving)
    match step:
        case AddVoter():
            key = ReplicaKey(step.key.id, step.key.directory_id)
            return adds and _is_wanted(key, targets) and voters.by_id(key.id) is None
        case RemoveVoter():
            key = ReplicaKey(step.key.id, step.key.directory_id)
            is_replaced = any(target.id == key.id for target in targets)
            return key in split.leaving and (not adds or is_replaced)
        case HandOver():
            return bool(split.leaving) and not adds
        case Reached():
            return split == _Split(0, ())


def _can_be_reached(text: str, voters: VoterSet, nodes: Sequence[ObservedNode]) -> bool:
    """Return whether each target means one node, and all of them run."""
    running = {node.node_id: node for node in nodes if node.core is not None}
    for target in parse_target_voters(text):
        node = running.get(target.id)
        if node is None or target.directory_id not in {None, node.directory_id}:
            return False
        voter = voters.by_id(target.id)
        is_other = voter is not None and voter.key.directory_id != node.directory_id
        if is_other and target.directory_id is None:
            return False
    return True


def _named(voters: VoterSet) -> str:
    keys = (VoterKey(voter.key.id, voter.key.directory_id) for voter in voters.voters)
    return target_voters_text(keys)
