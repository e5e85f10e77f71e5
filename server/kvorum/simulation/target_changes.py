"""The changes of the target voters (KIP-642) that an operator of a simulated quorum makes."""

from dataclasses import dataclass
from random import Random

from kvorum.controller.quorum_reassignment.requests import (
    configuration_request,
    reassignment_request,
)
from kvorum.metadata.voters import (
    TargetVoters,
    VoterKey,
    recorded_target_voters,
    target_voters_text,
)
from kvorum.node.outbound.client_connection import ClientConnectionError
from kvorum.simulation.budget import may_reach
from kvorum.simulation.fault_ratios import RATIOS
from kvorum.simulation.faults import Fault, FaultKind
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsResponse
from kvorum.wire.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from kvorum.wire.primitives import Message

_OPERATOR_ID = -101
"""The id of the operator in the network: no node and no client has it."""
_TARGETS_MAX = 7
"""The most voters that an operator asks for."""
_CHANGES_IN_A_ROW_MAX = 12
"""The most changes that an operator makes in a row."""
_RETRY_MS = 700.0
"""The time from NOT_CONTROLLER to the next attempt."""
_TRIES_MAX = 6
"""The attempts after which an operator gives up, though no controller has led."""


@dataclass(frozen=True, slots=True)
class _Change:
    """The target voters, or None for their end; and how they are stated."""

    targets: TargetVoters | None
    by_configuration: bool

    @property
    def text(self) -> str:
        return "nothing" if self.targets is None else target_voters_text(self.targets)

    def request(self) -> Message:
        """Return the request that states them."""
        if self.by_configuration:
            return configuration_request(self.targets)
        ids = None if self.targets is None else [target.id for target in self.targets]
        return reassignment_request(ids)


class TargetChanges:
    """States target voters as an operator would: again after NOT_CONTROLLER."""

    def __init__(self, quorum: SimulatedQuorum) -> None:
        self._quorum = quorum
        self._around = quorum.around

    def change(self, fault: Fault, random: Random) -> None:
        """State target voters, or several in a row, or cancel the present ones."""
        count = 1
        if random.random() < RATIOS.targets_in_a_row:
            count = random.randint(2, _CHANGES_IN_A_ROW_MAX)
        for index in range(count):
            at_ms = index * random.choice((1.0, 50.0, 500.0))
            self._around.events.after(at_ms, lambda: self._change_once(fault, random))

    def _change_once(self, fault: Fault, random: Random) -> None:
        quorum = self._quorum
        leader = quorum.leader()
        if not quorum.is_safety_phase or leader is None or leader.process is None:
            return
        if leader.process.client.kraft_version < 1:
            return
        present = recorded_target_voters(leader.process.application.image)
        by_configuration = random.random() < RATIOS.targets_by_configuration
        if present is not None and random.random() < RATIOS.targets_are_cancelled:
            self._state(_Change(None, by_configuration), fault, random)
            return
        targets = self._draw_targets(random, names_directories=by_configuration)
        if may_reach(quorum, targets):
            self._state(_Change(targets, by_configuration), fault, random)

    def _draw_targets(self, random: Random, *, names_directories: bool) -> TargetVoters:
        """Draw targets among all controllers, whether they run, lag, or have lost their disk."""
        nodes = [one for one in self._quorum.nodes.values() if one.can_vote and not one.is_barred]
        count = random.randint(1, min(len(nodes), _TARGETS_MAX))
        chosen = sorted(random.sample(nodes, count), key=lambda one: one.node_id)
        share = RATIOS.target_names_directory if names_directories else 0.0
        return tuple(
            VoterKey(one.node_id, one.directory_id if random.random() < share else None)
            for one in chosen
        )

    def _state(self, change: _Change, fault: Fault, random: Random, *, tries: int = 1) -> None:
        quorum, around = self._quorum, self._around
        leader = quorum.leader()
        if not quorum.is_safety_phase:
            return
        asked = list(quorum.nodes.values())[fault.first % len(quorum.nodes)]
        if leader is not None and random.random() < RATIOS.operator_asks_leader:
            asked = leader
        if change.targets is not None and not may_reach(quorum, change.targets):
            return
        around.trace.say(f"operator wants {change.text}, and asks {asked.node_id}")
        around.faults[FaultKind.CHANGED_TARGET_VOTERS] += 1
        around.properties.reassignments.asked_for(change.targets)

        def take(answer: Message | ClientConnectionError) -> None:
            if isinstance(answer, ClientConnectionError):
                return
            error = _error_of(answer)
            around.trace.say(f"operator hears from {asked.node_id}: error {error}")
            if error not in {ErrorCode.NONE, ErrorCode.NOT_CONTROLLER}:
                around.properties.reassignments.refused(change.targets)
            if error == ErrorCode.NOT_CONTROLLER and tries < _TRIES_MAX:
                around.events.after(
                    _RETRY_MS, lambda: self._state(change, fault, random, tries=tries + 1)
                )

        request = change.request()
        quorum.ask(_OPERATOR_ID, asked, request, take, version=request.MAX_VERSION)


def _error_of(answer: Message) -> int:
    match answer:
        case AlterPartitionReassignmentsResponse():
            errors = [one.error_code for topic in answer.responses for one in topic.partitions]
            return answer.error_code or max(errors, default=0)
        case IncrementalAlterConfigsResponse():
            return max((one.error_code for one in answer.responses), default=0)
        case _:
            raise TypeError(f"{type(answer).__name__} does not answer a change of target voters")
