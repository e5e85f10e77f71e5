"""The hooks that a world calls, and the properties that they check."""

from collections.abc import Callable
from random import Random

from kvorum.controller.quorum_reassignment.next_step import AddVoter, RemoveVoter
from kvorum.node.raft.inbound_requests import read_request
from kvorum.node.raft.listener import RaftListener
from kvorum.raft import ReplicaKey
from kvorum.raft.election_record import ElectionRecord
from kvorum.raft.messages import VoteRequest as CoreVoteRequest
from kvorum.raft.roles import RoleName
from kvorum.simulation.faults import FaultKind
from kvorum.simulation.properties.answers import Answers
from kvorum.simulation.properties.callbacks import Ledger, MonitoredListener
from kvorum.simulation.properties.catalogue import P19, Checks
from kvorum.simulation.properties.elections import Elections
from kvorum.simulation.properties.liveness import Liveness
from kvorum.simulation.properties.node_facts import NodeMemory, ObservedNode
from kvorum.simulation.properties.reassignments import Reassignments, Step
from kvorum.simulation.properties.restarts import Restarts
from kvorum.simulation.properties.shared_log import SharedLog
from kvorum.simulation.properties.snapshots import SnapshotFacts
from kvorum.simulation.properties.timeliness import Timeliness
from kvorum.simulation.properties.voters import Voters
from kvorum.simulation.properties.watermarks import Watermarks
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from kvorum.wire.messages.vote import VoteRequest
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import ZERO_UUID

_Fingerprint = tuple[object, ...]


class Properties:
    """All properties of a world; a hook that finds a broken one raises PropertyViolatedError."""

    def __init__(self, random: Random, *, now_ms: Callable[[], float]) -> None:
        self._now_ms = now_ms
        self.checks = Checks()
        self.ledger = Ledger(self.checks)
        self.shared = SharedLog(self.checks)
        self.elections = Elections(self.checks)
        self.watermarks = Watermarks(self.checks)
        self.snapshots = SnapshotFacts(self.checks, self.shared)
        self.voters = Voters(self.checks, self.snapshots)
        self.timeliness = Timeliness(self.checks)
        self.reassignments = Reassignments(self.checks, self.timeliness)
        self.liveness = Liveness(
            self.checks,
            elections=self.elections,
            shared=self.shared,
            ledger=self.ledger,
            reassignments=self.reassignments,
        )
        self._answers = Answers(self.checks, elections=self.elections, shared=self.shared)
        self._restarts = Restarts(self.checks, random)
        self._memories: dict[int, NodeMemory] = {}
        self._pre_votes: dict[int, tuple[CoreVoteRequest, ElectionRecord]] = {}

    def memory_of(self, node: ObservedNode) -> NodeMemory:
        """Return the memory of a node."""
        memory = self._memories.get(node.node_id)
        if memory is None:
            memory = self._memories[node.node_id] = NodeMemory(node)
        return memory

    def listener_for(self, node: ObservedNode, inner: RaftListener) -> RaftListener:
        """Return the listener for a node's replica; it passes every call on to `inner`."""
        return MonitoredListener(
            self.memory_of(node),
            inner,
            checks=self.checks,
            ledger=self.ledger,
            on_learned=self._state_machine_learned,
            on_batches=self.reassignments.take_committed,
        )

    def _state_machine_learned(self, memory: NodeMemory, offset: int) -> None:
        """Demand that a state machine gets committed records only: P7.

        The node may have had that high watermark for a part of one event only.
        """
        self._look_at_log(memory)
        self.watermarks.check_learned(memory, offset, self._memories.values())
        if not memory.is_log_damaged:
            self.shared.commit(memory, offset)
            self.voters.commit(memory, self.shared.committed_end)

    def node_starts(self, node: ObservedNode) -> None:
        """Check the disk of a node that is about to start; no process runs."""
        memory = self.memory_of(node)
        self._look_at_log(memory)
        memory.promise = memory.promised_offset()
        if not memory.is_log_damaged:
            self.shared.commit(memory, memory.high_watermark)
        self._restarts.rehearse(memory)

    def node_started(self, node: ObservedNode) -> None:
        """Check a node that has just started."""
        memory = self.memory_of(node)
        memory.role = memory.leader_role = None
        memory.is_excused = False
        memory.start_offset = 0
        memory.process_high_watermark = None
        memory.start_count = node.start_count
        self._restarts.started(memory)
        self.after_event(node)

    def node_refused_to_start(self, node: ObservedNode, error: Exception) -> None:
        """Check a failed start."""
        self._restarts.refused(self.memory_of(node), error)

    def node_failed(self, node: ObservedNode, error: Exception) -> None:
        """Check a replica that has stopped itself."""
        self._restarts.failed(self.memory_of(node), error)

    def node_crashes(self, node: ObservedNode) -> None:
        """Note the state of a process that is about to end, while its core can be read."""
        memory = self.memory_of(node)
        if node.core is not None:
            # A truncation may have reached the core only, and not the disk.
            memory.durable_offset = min(memory.durable_offset, node.core.log.durable_end_offset)
        # A record that a majority stored is committed, even where the leader has not stored it.
        memory.high_watermark = min(memory.high_watermark, memory.durable_offset)
        memory.role = None
        self._pre_votes.pop(node.node_id, None)
        self.timeliness.node_is_gone(memory)

    def node_paused(self, node: ObservedNode) -> None:
        """Note that a process is paused: it need not answer in time."""
        self.timeliness.node_is_gone(self.memory_of(node))

    def node_resumed(self, node: ObservedNode) -> None:
        """Note that a paused process goes on."""
        self.timeliness.node_is_back(self.memory_of(node), self._now_ms())

    def node_wiped(self, node: ObservedNode) -> None:
        """Forget a replaced disk, and its votes even where the new one keeps the directory id."""
        old = self._memories.pop(node.node_id, None)
        if old is not None:
            self.watermarks.disk_lost(old)
            self.voters.forget_log(old)
            self.elections.forget_directory(ReplicaKey(node.node_id, node.directory_id))

    def disk_fault(self, node: ObservedNode, fault: FaultKind) -> None:
        """Note a fault of the node's disk."""
        memory = self.memory_of(node)
        if fault in {FaultKind.REFUSED_WRITE, FaultKind.FAILED_SYNC}:
            memory.is_excused = True

    def operator_asked_to_add(self, node_id: int, directory_id: bytes) -> None:
        """Note a request to add a node as a voter."""
        self.voters.asked_to_add(ReplicaKey(node_id, directory_id))

    def change_admitted(self, node: ObservedNode, request: Message, next_offset: int) -> None:
        """Check a change by hand that a node does not refuse because of the target voters."""
        self.reassignments.change_admitted(self.memory_of(node), request, next_offset)
        if isinstance(request, RemoveRaftVoterRequest):
            directory_id = request.voter_directory_id
            known = None if directory_id == ZERO_UUID else directory_id
            self.voters.asked_to_remove(ReplicaKey(request.voter_id, known))

    def targets_known(self, node: ObservedNode, text: str | None, next_offset: int) -> None:
        """Check the target voters that a node's state machine knows."""
        self.reassignments.check_known(self.memory_of(node), text, next_offset)

    def step_taken(self, node: ObservedNode, text: str, step: Step, next_offset: int) -> None:
        """Check a step towards the target voters, right before it is taken."""
        self.reassignments.step_taken(
            self.memory_of(node), text, step, next_offset=next_offset, now_ms=self._now_ms()
        )
        if isinstance(step, AddVoter):
            self.voters.asked_to_add(
                ReplicaKey(step.key.id, step.key.directory_id), at_offset=next_offset
            )
        elif isinstance(step, RemoveVoter):
            self.voters.asked_to_remove(ReplicaKey(step.key.id, step.key.directory_id))

    def request_sent(self, node: ObservedNode, request: Message) -> None:
        """Check a request that leaves a node."""
        memory = self.memory_of(node)
        self._look_at_log(memory)
        self._answers.leaving_request(memory, request)

    def request_arrives(self, node: ObservedNode, request: Message) -> None:
        """Note the state of a node right before it gets a request."""
        self.timeliness.request_arrives(self.memory_of(node), request, self._now_ms())
        if not isinstance(request, VoteRequest) or node.core is None:
            return
        asked = read_request(request, cluster_id=node.settings.cluster_id)
        if isinstance(asked, CoreVoteRequest) and asked.is_pre_vote:
            self._pre_votes[node.node_id] = (asked, node.core.role.election_record)

    def response_leaves(self, node: ObservedNode, request: Message, response: Message) -> None:
        """Check a response that leaves a node."""
        memory = self.memory_of(node)
        self._look_at_log(memory)
        self._answers.leaving_response(memory, request, response)
        self.timeliness.response_leaves(memory, request, response, self._now_ms())

    def before_thread_piece(self, node: ObservedNode) -> _Fingerprint:
        """Return the state of the core before work off the event loop."""
        core = node.core
        if core is None:
            return ()
        return (core.role, core.high_watermark, core.log.end, core.log.durable_end_offset)

    def after_thread_piece(self, node: ObservedNode, before: _Fingerprint) -> None:
        """Demand that the work has not changed the core: P19."""
        after = self.before_thread_piece(node)
        text = f"work in a thread made {after} of {before} on node {node.node_id}"
        self.checks.demand(P19, text, holds=after == before or () in {after, before})

    def after_event(self, node: ObservedNode) -> None:
        """Check a node after one of its events."""
        memory = self.memory_of(node)
        pre_vote = self._pre_votes.pop(node.node_id, None)
        if pre_vote is not None:
            self.elections.check_pre_vote(memory, *pre_vote)
        self.elections.check_stored(memory)
        has_changed = self._look_at_log(memory)
        core = node.core
        if core is None:
            return
        role = core.role
        is_new_role = role is not memory.role
        self.elections.check_leader(memory, role)
        if is_new_role:
            # The node may have read more of a damaged disk, earlier, than can be read here.
            is_readable = not memory.is_damaged
            may_stand = self.voters.may_stand(memory) if is_readable else core.may_stand
            self.elections.check_role(memory, role, may_stand=may_stand)
        if is_new_role or has_changed:
            self.watermarks.check_epochs(memory, role)
        self.watermarks.check_durable(memory)
        is_higher = self.watermarks.check_high_watermark(memory, role, self._memories.values())
        if is_higher or has_changed:
            self._commit(memory)
            self.watermarks.check_end(memory)
        has_snapshots = self.snapshots.check(memory)
        self.snapshots.check_cover(memory)
        # Effects may still be queued: only then do the files not match the core's view.
        is_settled = core.log.end_offset == memory.scan.end_offset and not memory.is_log_damaged
        if is_settled and (has_changed or has_snapshots or is_new_role):
            self.voters.check(memory, role)
        if is_new_role and role.name is RoleName.LEADER:
            self.shared.check_leader(memory)
        self.timeliness.check(memory, role, self._now_ms())
        memory.role = role

    def _look_at_log(self, memory: NodeMemory) -> bool:
        """Read the changes in a node's files; return whether there are any."""
        changed_from = memory.scan.refresh()
        if changed_from is None:
            return False
        memory.scanned_end = memory.scan.end_offset
        marks, memory.marks = memory.marks, memory.scan.marks()
        if memory.is_log_damaged:
            self.shared.learn(memory, marks)
            return False
        self.shared.take_in(memory, changed_from)
        self.voters.take_in(memory, changed_from)
        if memory.node.core is not None:
            self.watermarks.check_end(memory)
        return True

    def _commit(self, memory: NodeMemory) -> None:
        if memory.is_log_damaged or memory.process_high_watermark is None:
            return
        self.shared.commit(memory, memory.process_high_watermark)
        self.voters.commit(memory, self.shared.committed_end)
