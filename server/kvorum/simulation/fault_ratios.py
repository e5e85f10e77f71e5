"""The ratios of faults: how often each strikes, and how much."""

from dataclasses import dataclass
from typing import Final

from kvorum.simulation.faults import Fault

_LEADER_STEPS = 5
"""The number of values of a fault's second target, of which a share strikes the leader."""


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


def strikes_leader(fault: Fault) -> bool:
    """Return whether a fault strikes the leader."""
    return fault.second % _LEADER_STEPS < RATIOS.strikes_leader * _LEADER_STEPS
