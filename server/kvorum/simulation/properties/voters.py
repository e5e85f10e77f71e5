"""The voter sets in the logs: P11, P12, P14, P33."""

from collections.abc import Iterator

from kvorum.node.raft.control_records import quorum_controls
from kvorum.raft import ReplicaKey
from kvorum.raft.roles import Leader, Role
from kvorum.raft.voter_set import VoterSet
from kvorum.simulation.properties.catalogue import P11, P12, P14, P33, Checks
from kvorum.simulation.properties.log_scan import LogScan, ScannedBatch
from kvorum.simulation.properties.node_facts import NodeMemory
from kvorum.simulation.properties.snapshots import SnapshotFacts
from kvorum.wire.records import read_batches


class _Controls:
    """The voter sets and kraft.versions in the control batches of one log, by offset."""

    def __init__(self) -> None:
        self.voters: list[tuple[int, VoterSet]] = []
        self.versions: list[tuple[int, int]] = []

    def cut(self, offset: int) -> None:
        self.voters = [one for one in self.voters if one[0] < offset]
        self.versions = [one for one in self.versions if one[0] < offset]

    def read(self, scan: LogScan, batches: Iterator[ScannedBatch]) -> bool:
        """Read more batches; return whether they contain voters or a kraft.version."""
        found = False
        for batch in batches:
            if not batch.is_control:
                continue
            for parsed in read_batches(memoryview(scan.bytes_of(batch))):
                controls = quorum_controls(parsed)
                self.voters += controls.voters
                self.versions += controls.kraft_versions
                found = found or bool(controls.voters or controls.kraft_versions)
        return found


class Voters:
    """The voter sets of all logs, the committed ones, and the requests to add voters."""

    def __init__(self, checks: Checks, snapshots: SnapshotFacts) -> None:
        self._checks = checks
        self._snapshots = snapshots
        self._controls: dict[int, _Controls] = {}
        self._committed: dict[int, VoterSet] = {}
        self._committed_end = 0
        self._removed: set[ReplicaKey] = set()
        # The offset at which each key was asked for: a removal below it does not take that back.
        self._asked_for: dict[ReplicaKey, int] = {}
        self._asked_to_go: set[ReplicaKey] = set()

    def forget_log(self, memory: NodeMemory) -> None:
        """Forget a node's log, which has been replaced."""
        self._controls.pop(id(memory), None)

    def asked_to_add(self, key: ReplicaKey, at_offset: int | None = None) -> None:
        """Note a request to add a node as a voter, by a client that knows the log below an offset.

        Without an offset that is all that is known here to be committed. A leader may know more: a
        removal that is not yet seen here, because the leader's own disk is damaged.
        """
        self._asked_for[key] = self._committed_end if at_offset is None else at_offset

    def asked_to_remove(self, key: ReplicaKey) -> None:
        """Note a request to remove a voter, which may be named by its id alone."""
        self._asked_to_go.add(key)

    def take_in(self, memory: NodeMemory, changed_from: int) -> None:
        """Read the control batches of a log from an offset on."""
        controls = self._controls.setdefault(id(memory), _Controls())
        controls.cut(changed_from)
        controls.read(memory.scan, memory.scan.batches_from(changed_from))

    def check(self, memory: NodeMemory, role: Role) -> None:
        """Compare the core's voters with those of snapshot and log: P12; and P11 on a leader."""
        core = memory.node.core
        if core is None:
            return
        controls = self._controls.setdefault(id(memory), _Controls())
        base = self._snapshots.controls_of_latest(memory)
        static = core.history.static
        first = -1 if base is None else base.end_offset
        sets = [voters for offset, voters in controls.voters if offset >= first]
        versions = [version for offset, version in controls.versions if offset >= first]
        recorded = None if base is None else base.voters
        voters = sets[-1] if sets else recorded or static
        version = versions[-1] if versions else (0 if base is None else base.kraft_version)
        text = f"{memory.name} takes {core.history.voters} for voters, its log has {voters}"
        self._checks.demand(P12, text, holds=core.history.voters == voters)
        text = f"{memory.name} is at kraft.version {core.history.kraft_version}, its log {version}"
        self._checks.demand(P12, text, holds=core.history.kraft_version == version)
        if isinstance(role, Leader):
            self._check_steps(memory, controls, first=first, base=recorded)

    def may_stand(self, memory: NodeMemory) -> bool:
        """Return whether a node may stand for election, by its log.

        The node must be in the latest voter set of its log, or in the previous one as long as the
        latest is not known to be committed: a leader that has removed itself may have to finish its
        removal. The previous set must contain the node's directory id: by its id alone, a new disk
        would pass for the lost one.
        """
        core = memory.node.core
        if core is None:
            return False
        if core.history.voters.is_voter(memory.key):
            return True
        base = self._snapshots.controls_of_latest(memory)
        first = -1 if base is None else base.end_offset
        controls = self._controls.setdefault(id(memory), _Controls())
        sets = [one for one in controls.voters if one[0] >= first]
        if not sets or sets[-1][0] < (memory.process_high_watermark or 0):
            return False
        recorded = None if base is None else base.voters
        before = sets[-2][1] if len(sets) > 1 else recorded or core.history.static
        return before.names(memory.key)

    def _check_steps(
        self, memory: NodeMemory, controls: _Controls, *, first: int, base: VoterSet | None
    ) -> None:
        """Demand changes in single steps, of which at most one is not committed."""
        committed = self._committed_end
        pending, before = 0, base
        for offset, voters in controls.voters:
            if offset < first:
                continue
            is_change = before is not None and _keys(before) != _keys(voters)
            if before is not None and offset >= committed:
                text = f"{memory.name} changes {before.ids} to {voters.ids} at {offset}"
                self._checks.demand(P11, text, holds=before.overlaps_safely(voters))
            pending += is_change and offset >= committed
            before = voters
        text = f"{memory.name} has {pending} changes of voters that are not committed"
        self._checks.demand(P11, text, holds=pending <= 1)

    def commit(self, memory: NodeMemory, committed_end: int) -> None:
        """Note the committed voter sets, in the order of the log: P14."""
        if committed_end <= self._committed_end:
            return
        for offset, voters in self._controls.setdefault(id(memory), _Controls()).voters:
            if self._committed_end <= offset < committed_end:
                self._take_committed(offset, voters)
        self._committed_end = committed_end

    def _take_committed(self, offset: int, voters: VoterSet) -> None:
        known = [at for at in self._committed if at < offset]
        before = self._committed[max(known)] if known else None
        if before is not None:
            gone = _keys(before) - _keys(voters)
            come = _keys(voters) - _keys(before)
            for key in sorted(come & self._removed, key=lambda one: one.id):
                text = f"voter {key} is back at {offset} and nobody asked for that"
                self._checks.demand(P14, text, holds=key in self._asked_for)
            self._check_asked(offset, come=come, gone=gone)
            self._removed |= gone
            for key in gone:
                if self._asked_for.get(key, 0) <= offset:
                    self._asked_for.pop(key, None)
        self._checks.held(P14)
        self._committed[offset] = voters

    def _check_asked(
        self, offset: int, *, come: frozenset[ReplicaKey], gone: frozenset[ReplicaKey]
    ) -> None:
        """Demand that who comes and who goes was asked for: P33."""
        strangers = come - self._asked_for.keys()
        text = f"nobody asked to add {[key.id for key in strangers]}, new at {offset}"
        self._checks.demand(P33, text, holds=not strangers)
        kept = {key for key in gone if not {key, ReplicaKey(key.id)} & self._asked_to_go}
        text = f"nobody asked to remove {[key.id for key in kept]}, gone at {offset}"
        self._checks.demand(P33, text, holds=not kept)
        self._asked_to_go -= {ReplicaKey(key.id) for key in come} | come


def _keys(voters: VoterSet) -> frozenset[ReplicaKey]:
    return frozenset(voter.key for voter in voters.voters)
