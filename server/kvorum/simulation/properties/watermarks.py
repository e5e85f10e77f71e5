"""The durable, committed and visible ends of the logs: P6, P7, P10, P26, P27."""

from collections.abc import Iterable

from kvorum.raft import ReplicaKey
from kvorum.raft.roles import Leader, Role
from kvorum.raft.voter_set import VoterSet
from kvorum.simulation.properties.catalogue import P6, P7, P10, P26, P27, Checks
from kvorum.simulation.properties.node_facts import NodeMemory


class Watermarks:
    """The high watermarks of all nodes, and the durable ends of lost disks."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        # The highest high watermark that a leader had, and in which epoch.
        self._leader_high_watermark = 0
        self._leader_epoch = 0
        # The durable ends of disks that are lost since: leaders know of them, and count them.
        self._lost: dict[ReplicaKey, int] = {}

    def disk_lost(self, memory: NodeMemory) -> None:
        """Note that a disk is lost, with the durable end that its node had reported."""
        self._lost[memory.key] = max(self._lost.get(memory.key, 0), memory.durable_offset)

    def check_durable(self, memory: NodeMemory) -> None:
        """Demand that records which the node takes for durable would survive: a part of P6."""
        core, scan = memory.node.core, memory.scan
        if core is None:
            return
        claimed = core.log.durable_end_offset
        if claimed == memory.durable_offset:
            return
        if claimed > memory.durable_offset and not memory.is_log_damaged:
            real = scan.durable_end_offset
            text = f"{memory.name} takes {claimed} for durable, and {real} is"
            self._checks.demand(P6, text, holds=claimed <= real)
        memory.durable_offset = claimed

    def check_high_watermark(
        self, memory: NodeMemory, role: Role, everyone: Iterable[NodeMemory]
    ) -> bool:
        """Check the node's high watermark; return whether it moved."""
        core = memory.node.core
        current = None if core is None else core.high_watermark
        if core is None or current is None:
            return False
        if isinstance(role, Leader):
            text = f"{memory.name} shows {current}, and epoch {role.epoch} starts at "
            text += f"{role.epoch_start_offset}"
            self._checks.demand(P7, text, holds=current > role.epoch_start_offset)
        if current == memory.process_high_watermark:
            return False
        before = memory.process_high_watermark or 0
        text = f"{memory.name}'s high watermark fell from {before} to {current}"
        self._checks.demand(P26, text, holds=current >= before)
        memory.process_high_watermark = current
        memory.high_watermark = max(memory.high_watermark, current)
        if isinstance(role, Leader):
            self._check_leader(memory, role, current)
            self._check_majority(memory, core.history.voters, current, everyone)
        return True

    def _check_leader(self, memory: NodeMemory, role: Leader, current: int) -> None:
        if role.epoch >= self._leader_epoch:
            text = (
                f"{memory.name} leads {role.epoch} with {current}, "
                f"after {self._leader_high_watermark} in {self._leader_epoch}"
            )
            self._checks.demand(P26, text, holds=current >= self._leader_high_watermark)
            self._leader_epoch, self._leader_high_watermark = role.epoch, current

    def _check_majority(
        self,
        memory: NodeMemory,
        voters: VoterSet,
        high_watermark: int,
        everyone: Iterable[NodeMemory],
    ) -> None:
        """Demand that a majority of the voters would have the records after a power cut: P6."""
        who = self._durable_on(voters, high_watermark, everyone)
        text = f"{memory.name} commits {high_watermark} for {voters.ids}, durable on {who}"
        self._checks.demand(P6, text, holds=len(who) >= voters.majority)

    def check_learned(
        self, memory: NodeMemory, offset: int, everyone: Iterable[NodeMemory]
    ) -> None:
        """Demand that a state machine gets committed records only: P7."""
        core = memory.node.core
        if core is None:
            return
        known = max(memory.high_watermark, core.high_watermark or 0)
        if offset > known:
            # A leader that committed these records and has resigned since shows no high watermark.
            self.check_durable(memory)
            voters = core.history.voters
            who = self._durable_on(voters, offset, everyone)
            text = f"{memory.name} tells of {offset}, above {known}, durable on {who}"
            self._checks.demand(P7, text, holds=len(who) >= voters.majority)
        self._checks.held(P7)
        memory.high_watermark = max(memory.high_watermark, offset)

    def check_end(self, memory: NodeMemory) -> None:
        """Demand that the log still reaches its node's highest high watermark: P27."""
        if memory.is_log_damaged:
            return
        end = memory.scan.kept_end_offset
        text = f"{memory.name}'s log ends at {end}, below {memory.high_watermark}"
        self._checks.demand(P27, text, holds=end >= memory.high_watermark)

    def check_epochs(self, memory: NodeMemory, role: Role) -> None:
        """Demand that no stored batch has a later epoch than the node: P10."""
        log = memory.node.log
        latest = None if log is None else log.local_log.latest_epoch
        if latest is None:
            return
        text = f"{memory.name} is in epoch {role.epoch} and has records of {latest}"
        self._checks.demand(P10, text, holds=latest <= role.epoch)

    def _durable_on(
        self, voters: VoterSet, offset: int, everyone: Iterable[NodeMemory]
    ) -> list[int]:
        """Return the voters that would have everything below an offset after a power cut."""
        live = {memory.key for memory in everyone if memory.durable_offset >= offset}
        lost = {key for key, durable_offset in self._lost.items() if durable_offset >= offset}
        return sorted({key.id for key in live | lost if voters.is_voter(key)})
