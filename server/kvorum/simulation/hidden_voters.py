"""Voters that cannot be reached where they say, and the operator's changes meanwhile.

A voter comes back at another port, and everything that is sent to it vanishes without an error. Its
own requests are answered, so it fetches, and reports its port to the leader again and again. Each
time the leader asks it for its versions there, and gets no answer. While the leader waits, the
operator removes this voter, or changes others.
"""

from random import Random
from typing import Final

from kvorum.raft.voter_changes.steps import RECONFIGURABLE_KRAFT_VERSION
from kvorum.simulation.fault_ratios import RATIOS
from kvorum.simulation.faults import Fault, FaultKind
from kvorum.simulation.node import SimulatedNode
from kvorum.simulation.operator import Operator
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.headers import decode_request_frame

_RESTART_MS: Final = 300.0
_LOOK_FOR_VOTER_MS: Final = 500.0
_PROBE_MS_MIN: Final = 500.0
"""The shortest time for which a leader of any world waits for the answer of a voter."""


class HiddenVoters:
    """The injector of hidden voters."""

    def __init__(self, quorum: SimulatedQuorum, operator: Operator) -> None:
        self._quorum = quorum
        self._around = quorum.around
        self._operator = operator

    def hide(self, fault: Fault, random: Random) -> None:
        """Hide a follower for a while; where no voter can be hidden yet, look again later."""
        events = self._around.events
        if not self._quorum.is_safety_phase:
            return
        candidates = self._candidates()
        if not candidates:
            events.after(_LOOK_FOR_VOTER_MS, lambda: self.hide(fault, random))
            return
        voter = candidates[fault.first % len(candidates)]
        self._around.faults[FaultKind.HIDDEN_VOTER] += 1
        voter.crash(is_power_cut=False)
        voter.hide(lambda frame: self._vanished(voter, frame, fault, random))
        self._around.trace.say(f"{voter.node_id} is hidden at port {voter.port}")
        events.after(_RESTART_MS, voter.start)
        events.after(_RESTART_MS + fault.duration_ms, lambda: self._show(voter))

    def _candidates(self) -> list[SimulatedNode]:
        """Return the running followers that are voters of a log that has the voters."""
        quorum = self._quorum
        leader = quorum.leader()
        if leader is None or leader.process is None:
            return []
        if leader.process.client.kraft_version < RECONFIGURABLE_KRAFT_VERSION:
            return []
        return [
            node
            for node in quorum.nodes.values()
            if node is not leader
            and node.is_up
            and not (node.is_hidden or node.is_damaged)
            and leader.voters.names(node.key)
        ]

    def _vanished(self, voter: SimulatedNode, frame: bytes, fault: Fault, random: Random) -> None:
        """Change the voters, now and then, while the leader waits for the voter's versions."""
        header, _ = decode_request_frame(frame)
        is_probe = header.request_api_key == ApiKey.API_VERSIONS
        if is_probe and random.random() < RATIOS.change_during_probe:
            self._around.events.after(
                random.random() * _PROBE_MS_MIN, lambda: self._change(voter, fault, random)
            )

    def _change(self, voter: SimulatedNode, fault: Fault, random: Random) -> None:
        if random.random() < RATIOS.hidden_voter_is_removed:
            self._operator.remove_voter(voter.key, fault, random)
        else:
            self._operator.change_voters(fault, random)

    def _show(self, voter: SimulatedNode) -> None:
        if voter.is_hidden:
            voter.show()
            self._around.trace.say(f"{voter.node_id} can be reached at port {voter.port}")
