"""The injection of planned faults, and their end when their time is over."""

import errno
from collections.abc import Callable, Mapping
from random import Random

from kvorum.simulation.budget import is_known_by_directory, may_damage, replace_disk
from kvorum.simulation.disk_faults import METADATA_LOG_KINDS
from kvorum.simulation.fault_ratios import RATIOS, strikes_leader
from kvorum.simulation.faults import Fault, FaultKind
from kvorum.simulation.hidden_voters import HiddenVoters
from kvorum.simulation.network_faults import NetworkFaults
from kvorum.simulation.node import SYNC_OF_MUCH, SimulatedNode
from kvorum.simulation.operator import Operator
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.simulation.surroundings import StepCrash, StepMoment
from kvorum.simulation.target_changes import TargetChanges

"""The kinds of files that faults of a disk strike."""
_CALLS_MAX = 60
"""A crash point lies before one of this many calls to the disk."""
_SUCH_CALLS_MAX = 6
"""A crash point that counts one kind of calls, which is rarer, is one of this many."""
_CRASHING_OPERATIONS = (
    *(SYNC_OF_MUCH, SYNC_OF_MUCH, SYNC_OF_MUCH, SYNC_OF_MUCH, SYNC_OF_MUCH, SYNC_OF_MUCH),
    *("sync", "sync directory", "rename", "write", "truncate", "create"),
)
"""The kinds of calls that a crash point may count; syncs of much come as often as all others."""
_SENDS_MAX = 12
"""A crash point before a request is one of this many requests."""
_JUMP_MS_MAX = 30_000
"""The most by which a clock is set forward or back."""
_LOOK_FOR_UPGRADE_MS = 200.0
"""The time between two checks of whether an upgrade has recorded a voter."""
_NEXT_CHANGE_MS_MAX = 500.0
"""The longest time from the end of a change that is held up to the next one."""


class Injector:
    """The injector of a world's faults."""

    def __init__(self, quorum: SimulatedQuorum) -> None:
        self._quorum = quorum
        self._around = quorum.around
        self._operator = Operator(quorum)
        self._target_changes = TargetChanges(quorum)
        self._hidden_voters = HiddenVoters(quorum, self._operator)
        self._network = network = NetworkFaults(quorum)
        self._strikes: Mapping[FaultKind, Callable[[Fault, Random], None]] = {
            FaultKind.LOST_MESSAGES: network.lose,
            FaultKind.DOUBLED_MESSAGES: network.double,
            FaultKind.LATE_MESSAGES: network.delay,
            FaultKind.CLOGGED_PATH: network.clog,
            FaultKind.PARTITION: network.cut_in_two,
            FaultKind.CUT_PATHS: network.cut_somehow,
            FaultKind.BROKEN_CONNECTION: network.reset,
            FaultKind.CRASH_POINT: self._set_crash_point,
            FaultKind.RESTART: self._restart,
            FaultKind.PAUSE: self._pause,
            FaultKind.CHANGED_CLOCK: self._change_clock,
            FaultKind.LOST_TAIL: self._cut_power,
            FaultKind.FAILED_SYNC: self._fail_sync,
            FaultKind.REFUSED_WRITE: self._refuse_writes,
            FaultKind.BIT_FLIP: self._flip_bit,
            FaultKind.WIPE: self._replace_disk,
            FaultKind.WIPE_AFTER_UPGRADE: self._replace_disk_after_upgrade,
            FaultKind.UPGRADE: self._operator.upgrade,
            FaultKind.CHANGED_VOTERS: self._change_voters,
            FaultKind.CHANGED_TARGET_VOTERS: self._target_changes.change,
            FaultKind.CRASH_AT_STEP: self._set_step_crash,
            FaultKind.HIDDEN_VOTER: self._hidden_voters.hide,
        }

    def strike(self, fault: Fault) -> None:
        """Begin a fault."""
        self._around.trace.say(f"fault: {fault.kind.value}")
        self._strikes[fault.kind](fault, Random(fault.seed))  # noqa: S311 - to be repeatable is its use

    def heal(self) -> None:
        """Let no fault strike any more, undo every one, and start the nodes that may run."""
        quorum, around = self._quorum, self._around
        quorum.is_safety_phase = False
        around.trace.say("all faults stop")
        around.network.calm()
        around.step_crashes.clear()
        for node in quorum.without_brokers():
            node.forget_faults()
            node.show()
            node.resume()
            if node.is_damaged:
                node.crash(is_power_cut=False)
                replace_disk(quorum, node)
            elif node.process is not None and node.process.is_stopping:
                node.crash(is_power_cut=False)
            if node.process is None:
                node.start()
        around.properties.liveness.begin(around.now_ms, quorum.running())

    def _target(self, fault: Fault) -> SimulatedNode:
        """Return the node that a fault strikes: often the leader."""
        leader = self._quorum.leader()
        if leader is not None and strikes_leader(fault):
            return leader
        nodes = self._quorum.without_brokers()
        return nodes[fault.first % len(nodes)]

    def _later(self, fault: Fault, undo: Callable[[], None]) -> None:
        self._around.events.after(fault.duration_ms, undo)

    def _set_crash_point(self, fault: Fault, random: Random) -> None:
        at_disk = random.random() < RATIOS.crash_at_disk
        is_of_one_kind = random.random() < RATIOS.crash_at_operation
        operation = random.choice(_CRASHING_OPERATIONS) if is_of_one_kind else None
        count_max = _CALLS_MAX if operation is None else _SUCH_CALLS_MAX
        if operation == SYNC_OF_MUCH:
            count_max = 1
        self._target(fault).set_crash_point(
            disk_calls=random.randrange(count_max) if at_disk else None,
            operation=operation,
            sends=None if at_disk else random.randrange(_SENDS_MAX),
            is_power_cut=operation == SYNC_OF_MUCH or random.random() < RATIOS.crash_cuts_power,
            restart_ms=float(fault.duration_ms),
        )

    def _set_step_crash(self, fault: Fault, random: Random) -> None:
        """Let a leader crash at a step towards other voters, as soon as one takes it."""
        self._around.step_crashes.append(
            StepCrash(
                random.choice(list(StepMoment)),
                is_power_cut=random.random() < RATIOS.step_crash_cuts_power,
                restart_ms=float(fault.duration_ms),
            )
        )

    def _restart(self, fault: Fault, random: Random) -> None:
        node = self._target(fault)
        self._around.faults[FaultKind.RESTART] += 1
        if random.random() < RATIOS.clean_stop:
            node.stop(lambda: self._later(fault, node.start))
            return
        is_for_all = random.random() < RATIOS.kill_all
        for one in self._quorum.without_brokers() if is_for_all else [node]:
            one.crash_and_restart(is_power_cut=False, restart_ms=fault.duration_ms)

    def _cut_power(self, fault: Fault, random: Random) -> None:
        """Cut the power of one node, or of all nodes at once as in a data centre."""
        quorum = self._quorum
        node = self._target(fault)
        if random.random() < RATIOS.power_cut_of_all:
            for one in quorum.without_brokers():
                one.crash_and_restart(is_power_cut=True, restart_ms=fault.duration_ms)
            return
        is_scattering = random.random() < RATIOS.power_cut_scatters and may_damage(quorum, node)
        node.crash(is_power_cut=True, is_scattering=is_scattering)
        self._later(fault, node.start)
        if is_scattering:
            self._repair_later(fault, node)

    def _pause(self, fault: Fault, random: Random) -> None:
        del random
        node = self._target(fault)
        if node.process is None:
            return
        self._around.faults[FaultKind.PAUSE] += 1
        node.pause()
        self._later(fault, node.resume)

    def _change_clock(self, fault: Fault, random: Random) -> None:
        node = self._target(fault)
        self._around.faults[FaultKind.CHANGED_CLOCK] += 1
        if random.random() < RATIOS.clock_drifts:
            node.clock.set_drift((2 * fault.amount - 1) * RATIOS.drift_max)
        else:
            node.clock.jump_wall(int((2 * fault.amount - 1) * _JUMP_MS_MAX))
        self._around.trace.say(f"{node.node_id} has another clock")

    def _fail_sync(self, fault: Fault, random: Random) -> None:
        self._target(fault).disk.fail_next_sync([random.choice(METADATA_LOG_KINDS)])

    def _refuse_writes(self, fault: Fault, random: Random) -> None:
        node = self._target(fault)
        is_of_one_kind = random.random() < RATIOS.refusal_of_one_kind
        kinds = [random.choice(METADATA_LOG_KINDS)] if is_of_one_kind else list(METADATA_LOG_KINDS)
        if random.random() < RATIOS.refusal_of_one_write:
            node.disk.refuse_writes(kinds, error=errno.EIO, calls=1)
        else:
            node.disk.refuse_writes(kinds, error=errno.ENOSPC)
            self._later(fault, node.disk.accept_writes)

    def _flip_bit(self, fault: Fault, random: Random) -> None:
        node = self._target(fault)
        if not may_damage(self._quorum, node):
            return
        if node.disk.flip_bit(random.choice(METADATA_LOG_KINDS)) is not None:
            node.is_damaged = True
            self._repair_later(fault, node)

    def _repair_later(self, fault: Fault, node: SimulatedNode) -> None:
        """Replace the node's disk after a while, unless that has happened already."""

        def repair() -> None:
            if not node.is_damaged:
                return
            node.crash(is_power_cut=False)
            replace_disk(self._quorum, node)
            node.start()

        self._around.events.after(10_000 + fault.duration_ms, repair)

    def _change_voters(self, fault: Fault, random: Random) -> None:
        """Change the voters; now and then, the leader's record of that is not committed in time.

        The other voters are cut off, so that they neither fetch the record nor elect another
        leader. Right after the time is over, the operator asks for another change, which the leader
        must refuse (KAFKA-20740).
        """
        leader = self._quorum.leader()
        is_asked = self._operator.change_voters(fault, random)
        if leader is None or not is_asked or random.random() >= RATIOS.change_is_held_up:
            return
        others = [one for one in leader.voters.ids if one != leader.node_id]
        timeout_ms = self._around.options.raft.request_timeout_ms
        next_ms = timeout_ms + random.random() * _NEXT_CHANGE_MS_MAX
        self._network.isolate(others, next_ms + timeout_ms)

        def ask_again() -> None:
            self._operator.change_voters(fault, random)

        self._around.events.after(next_ms, ask_again)

    def _replace_disk(self, fault: Fault, random: Random) -> None:
        """Replace a node's disk; an observer may come back under its former directory id."""
        node = self._target(fault)
        if node.is_damaged or not may_damage(self._quorum, node):
            return
        node.crash(is_power_cut=True)
        if not node.can_vote and random.random() < RATIOS.observer_keeps_directory_id:
            node.wipe(keeps_directory_id=True)
        else:
            replace_disk(self._quorum, node)
        self._later(fault, node.start)

    def _replace_disk_after_upgrade(self, fault: Fault, random: Random) -> None:
        """Replace a voter's disk as soon as the others know its directory, and restart it later.

        At the second restart the new disk holds the record of the upgrade, and its process does not
        know whether the record is committed. The leader is killed too, which forces an election.
        """
        quorum, around = self._quorum, self._around
        if not quorum.is_safety_phase:
            return
        voters = [one for one in quorum.nodes.values() if one.can_vote]
        node = voters[fault.first % len(voters)]
        if not (is_known_by_directory(quorum, node) and may_damage(quorum, node)):
            around.events.after(
                _LOOK_FOR_UPGRADE_MS, lambda: self._replace_disk_after_upgrade(fault, random)
            )
            return
        around.faults[FaultKind.WIPE_AFTER_UPGRADE] += 1
        node.crash(is_power_cut=True)
        replace_disk(quorum, node)
        self._later(fault, node.start)
        around.events.after(2.0 * fault.duration_ms, lambda: self._restart_with_leader(fault, node))

    def _restart_with_leader(self, fault: Fault, node: SimulatedNode) -> None:
        """Kill and start a node; kill the leader with it, which comes back later."""
        if not self._quorum.is_safety_phase:
            return
        leader = self._quorum.leader()
        node.crash(is_power_cut=False)
        node.start()
        if leader is not None and leader is not node:
            leader.crash_and_restart(is_power_cut=False, restart_ms=fault.duration_ms)
