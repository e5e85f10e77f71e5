"""The faults of a run: kinds, ratios, and a plan as plain data, of which any can be left out.

The plan is drawn before the run begins.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from types import MappingProxyType
from typing import Final

from kvorum.simulation.options import Options, QuorumKind

_HIDDEN_VOTERS_OF_A_RUN = (1, 2, 3)
"""The numbers of times that a voter is hidden in a run; each run draws one of these."""


class FaultKind(Enum):
    """One kind of fault; its value is its name in traces, plans and reports."""

    LOST_MESSAGES = "messages lost"
    DOUBLED_MESSAGES = "messages doubled"
    LATE_MESSAGES = "messages late"
    """Messages take long, and overtake each other."""
    CLOGGED_PATH = "path clogged"
    """Nothing arrives on a path for a while, then everything at once."""
    PARTITION = "network cut in two"
    CUT_PATHS = "paths cut"
    """One direction is cut, one node is cut off, or one after the other is."""
    BROKEN_CONNECTION = "connection reset"
    """A connection breaks at once, or after it was half open."""
    CRASH_POINT = "crash between two steps"
    """A process ends before a call to its disk, or before a request."""
    RESTART = "process restarted"
    """A process is killed or stopped, and started again."""
    PAUSE = "process paused"
    CHANGED_CLOCK = "clock drifts or is set"
    LOST_TAIL = "unsynced bytes lost"
    """The power is cut; unsynced bytes are lost, wholly or in part."""
    TORN_WRITE = "write torn"
    """Some blocks of one unsynced write survive a power cut, and others do not."""
    LOST_NAME = "name lost"
    """A new name, or a renaming, that was not synced is lost with the power."""
    FAILED_SYNC = "sync failed"
    REFUSED_WRITE = "writes refused"
    """A disk is full, or a write fails."""
    BIT_FLIP = "bit flipped"
    WIPE = "disk replaced"
    WIPE_AFTER_UPGRADE = "disk replaced after upgrade"
    """A voter's disk is replaced as soon as an upgrade of kraft.version has recorded it."""
    UPGRADE = "mixed releases, upgrade"
    """Nodes speak several releases, or kraft.version is upgraded."""
    CHANGED_VOTERS = "voters changed"
    """Voters are added and removed, or a leader is asked to resign."""
    CHANGED_TARGET_VOTERS = "target voters changed"
    """The target voters (KIP-642) are stated, replaced or cancelled."""
    CRASH_AT_STEP = "crash at a step"
    """A leader crashes at a step that it takes towards the target voters."""
    HIDDEN_VOTER = "voter hidden"
    """A voter moves to a port at which everything vanishes; its own requests are answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRatios:
    """Probabilities and largest amounts between 0 and 1, each named after what it decides."""

    # The faults of a run.
    kinds_of_a_run: tuple[float, ...] = (0.3, 0.6, 0.9)
    """The share of the kinds that a run has; each run draws one of these."""
    strikes_leader: float = 0.4
    """A fault of one node strikes the leader; else any node."""

    # The network.
    loss_max: float = 0.3
    """The largest share of the messages on a path that are lost."""
    duplication_max: float = 0.5
    """The largest share of the messages on a path that arrive twice."""
    all_routes: float = 0.4
    """A fault of some routes strikes all of them."""
    reset_at_once: float = 0.5
    """A connection is reset at once; else it is half open for a while first."""

    # Processes and clocks.
    crash_at_disk: float = 0.8
    """A crash point lies before a call to the disk; else before a request."""
    crash_at_operation: float = 0.7
    """A crash point at the disk counts calls of one kind only."""
    crash_cuts_power: float = 0.6
    """A crash point takes the machine with it; one in the middle of a big write always does."""
    clean_stop: float = 0.4
    """A process that is restarted is stopped as an operator does; else it is killed."""
    kill_all: float = 0.1
    """A kill strikes all processes at once."""
    clock_drifts: float = 0.5
    """A changed clock goes faster or slower; else it is set."""
    drift_max: float = 0.1
    """The most by which a clock goes faster or slower."""

    # Disks.
    power_cut_of_all: float = 0.15
    """A power cut strikes all nodes at once, as in a data centre."""
    power_cut_scatters: float = 0.15
    """A power cut of one node lets blocks arrive in any order, which looks like damage."""
    file_keeps_size: float = 0.2
    """A file keeps its full length in a power cut, with zeros where blocks are missing."""
    block_arrives: float = 0.5
    """A block of an unsynced write survives, where any block may."""
    names_in_order: float = 0.5
    """The first ones of the unsynced names survive; else any of them."""
    name_survives: float = 0.5
    """An unsynced name survives, where any name may."""
    refusal_of_one_kind: float = 0.5
    """A disk refuses writes to one kind of file; else to all kinds."""
    refusal_of_one_write: float = 0.5
    """A disk refuses one write with an error; else it is full for a while."""
    observer_keeps_directory_id: float = 0.5
    """An observer whose disk is replaced comes back under the same directory id."""

    # The operator.
    resignation: float = 0.15
    """The operator asks a leader to resign; else it changes the voters."""
    operator_asks_leader: float = 0.9
    """The operator asks the leader; else any node."""
    voter_is_added: float = 0.6
    """The operator adds a voter where it could also remove one."""
    answer_when_committed: float = 0.7
    """The operator asks for the answer to an addition once it is committed; else at once."""
    voter_is_hidden: float = 0.5
    """Voters are hidden in a run, where they may change."""
    change_during_probe: float = 0.5
    """The operator changes the voters while the leader waits for the answer of a hidden voter."""
    hidden_voter_is_removed: float = 0.5
    """The operator removes a hidden voter; else it makes any change of the voters."""
    change_is_held_up: float = 0.4
    """A change of the voters is not committed in time, and the operator asks for another."""
    targets_are_cancelled: float = 0.4
    """The operator cancels pending target voters; else others replace them."""
    targets_by_configuration: float = 0.4
    """The configuration key states them, which may name directories; else a list of ids does."""
    target_names_directory: float = 0.5
    """A target that is stated there is named with its directory."""
    late_targets: float = 0.5
    """Target voters are stated right before faults stop, besides those at any time."""
    targets_in_a_row: float = 0.4
    """The operator changes its mind several times in a row."""
    step_crash_cuts_power: float = 0.4
    """A crash at a step takes the machine with it."""


RATIOS: Final = FaultRatios()
"""The ratios of every run."""


_FIRST_AT_MS = 3_000
_STRIKES_OF_A_KIND = (1, 1, 2, 3, 5)
"""The rates at which kinds of faults strike in a run; each kind draws one of these."""
_LEADER_STEPS = 5
_LATE_TARGETS_MS = 3_000
"""The time before the end of the faults at which late target voters are stated."""
_USUAL_DURATION_MS: Final[Mapping[FaultKind, int]] = MappingProxyType(
    {
        FaultKind.LOST_MESSAGES: 8_000,
        FaultKind.DOUBLED_MESSAGES: 8_000,
        FaultKind.LATE_MESSAGES: 6_000,
        FaultKind.CLOGGED_PATH: 2_000,
        FaultKind.PARTITION: 6_000,
        FaultKind.CUT_PATHS: 6_000,
        FaultKind.BROKEN_CONNECTION: 2_000,
        FaultKind.CRASH_POINT: 3_000,
        FaultKind.RESTART: 5_000,
        FaultKind.PAUSE: 2_000,
        FaultKind.CHANGED_CLOCK: 1,
        FaultKind.LOST_TAIL: 3_000,
        FaultKind.FAILED_SYNC: 3_000,
        FaultKind.REFUSED_WRITE: 6_000,
        FaultKind.BIT_FLIP: 1,
        FaultKind.WIPE: 3_000,
        FaultKind.WIPE_AFTER_UPGRADE: 3_000,
        FaultKind.UPGRADE: 1,
        FaultKind.CHANGED_VOTERS: 1,
        FaultKind.CHANGED_TARGET_VOTERS: 1,
        FaultKind.CRASH_AT_STEP: 3_000,
        FaultKind.HIDDEN_VOTER: 10_000,
    }
)
_USUAL_DURATION_MS_MAX = 20_000
_WITH_UPGRADE: Final = frozenset({FaultKind.WIPE_AFTER_UPGRADE})
"""Kinds that are not drawn: a run with an upgraded quorum has each once, with the upgrade."""
_DRAWN_APART: Final = frozenset({FaultKind.HIDDEN_VOTER})
"""Kinds that came later, and have generators of their own: a seed keeps its other faults."""
_WITH_VOTERS_IN_LOG: Final = frozenset(
    {
        FaultKind.WIPE,
        FaultKind.CHANGED_VOTERS,
        FaultKind.CHANGED_TARGET_VOTERS,
        FaultKind.CRASH_AT_STEP,
    }
)
"""Kinds that need voters with known directories, or voters that may change."""
_DURATION_MS_MAX: Final[Mapping[FaultKind, int]] = MappingProxyType(
    {FaultKind.RESTART: 60_000, FaultKind.PAUSE: 10_000}
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its kind, time, duration, targets and amount.

    The targets are numbers, taken modulo the number of candidates when the fault strikes; `amount`
    is between 0 and 1. All further random choices of the fault come from `seed`.
    """

    kind: FaultKind
    at_ms: int
    duration_ms: int
    first: int
    second: int
    amount: float
    seed: int

    def describe(self) -> str:
        """Return the fault as one line of text."""
        return f"{self.kind.value} at {self.at_ms / 1000:.3f} s"


def draw_plan(random: Random, options: Options) -> tuple[Fault, ...]:
    """Draw the faults of a run, of some kinds only, in order of their times."""
    share = random.choice(RATIOS.kinds_of_a_run)
    drawable = [kind for kind in _USUAL_DURATION_MS if kind not in _WITH_UPGRADE | _DRAWN_APART]
    kinds = [kind for kind in drawable if random.random() < share]
    plan: list[Fault] = []
    for kind in kinds:
        if kind in _WITH_VOTERS_IN_LOG and options.kind is QuorumKind.STATIC:
            continue
        count = random.choice(_STRIKES_OF_A_KIND)
        plan += [_draw(random, kind, until_ms=options.safety_ms) for _ in range(count)]
    if options.kind is not QuorumKind.STATIC and random.random() < RATIOS.late_targets:
        late = _draw(random, FaultKind.CHANGED_TARGET_VOTERS, until_ms=options.safety_ms)
        plan.append(replace(late, at_ms=options.safety_ms - 1 - random.randrange(_LATE_TARGETS_MS)))
    if options.kind is QuorumKind.UPGRADED:
        upgrade = _draw(random, FaultKind.UPGRADE, until_ms=options.safety_ms // 2)
        lost_disk = _draw(random, FaultKind.WIPE_AFTER_UPGRADE, until_ms=options.safety_ms)
        plan += [upgrade, replace(lost_disk, at_ms=upgrade.at_ms)]
    return in_order(plan)


def draw_hidden_voters(random: Random, options: Options) -> tuple[Fault, ...]:
    """Draw the times at which voters are hidden in a run."""
    if options.kind is QuorumKind.STATIC or random.random() >= RATIOS.voter_is_hidden:
        return ()
    count = random.choice(_HIDDEN_VOTERS_OF_A_RUN)
    return tuple(
        _draw(random, FaultKind.HIDDEN_VOTER, until_ms=options.safety_ms) for _ in range(count)
    )


def in_order(plan: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return the faults of a plan in order of their times."""
    return tuple(sorted(plan, key=lambda fault: (fault.at_ms, fault.kind.value, fault.seed)))


def strikes_leader(fault: Fault) -> bool:
    """Return whether a fault strikes the leader."""
    return fault.second % _LEADER_STEPS < RATIOS.strikes_leader * _LEADER_STEPS


def _draw(random: Random, kind: FaultKind, *, until_ms: int) -> Fault:
    duration_ms = int(random.expovariate(1.0) * _USUAL_DURATION_MS[kind]) + 1
    return Fault(
        kind=kind,
        at_ms=random.randrange(_FIRST_AT_MS, until_ms),
        duration_ms=min(duration_ms, _DURATION_MS_MAX.get(kind, _USUAL_DURATION_MS_MAX)),
        first=random.randrange(1_000_000),
        second=random.randrange(1_000_000),
        amount=random.random(),
        seed=random.randrange(2**32),
    )
