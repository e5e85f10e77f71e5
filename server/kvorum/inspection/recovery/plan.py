"""The plan of a recovery: which directory goes on, with which voters, and in which epoch."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvorum.inspection.recovery.choice import (
    check_belong_together,
    check_recovery_is_needed,
    choose,
)
from kvorum.inspection.recovery.forecast import Forecast, forecast_of
from kvorum.inspection.recovery.survivor import RecoveryRefusedError, Survivor
from kvorum.raft import Endpoint, ReplicaKey
from kvorum.raft.basics import EPOCH_MAX
from kvorum.raft.voter_set import KRAFT_VERSION_MAX, KRAFT_VERSION_MIN, Voter, VoterSet
from kvorum.storage.small_files.quorum_state import QuorumState

EPOCH_GAP = 1000
"""The distance of the new epoch from the highest one that is known.

The lost controllers may have elected leaders in epochs that no given directory names. A broker that
has heard of such an epoch refuses every leader below it, for ever; a gap costs nothing.
"""
_DEFAULT_LISTENER = "CONTROLLER"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryOptions:
    """The operator's request; `address` replaces that of the node in the voter set."""

    node_id: int | None = None
    address: tuple[str, int] | None = None
    listener_name: str | None = None
    allows_observer: bool = False
    allows_shorter_log: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPlan:
    """The changes that would be written into the directory of `chosen`.

    At kraft.version 1 a batch of epoch `epoch` at the end of the log makes `voter` the only one. At
    kraft.version 0 the configuration names the voters, and only quorum-state is written.
    """

    chosen: Survivor
    survivors: tuple[Survivor, ...]
    forecast: Forecast
    epoch: int
    voter: Voter

    @property
    def is_dynamic(self) -> bool:
        """Whether the voters are recorded in the log (kraft.version 1)."""
        return self.chosen.is_dynamic

    @property
    def voters(self) -> VoterSet:
        """The voters after the recovery."""
        return VoterSet.of([self.voter])

    @property
    def election(self) -> QuorumState:
        """The election state after the recovery."""
        return self.chosen.election_alone(self.epoch)


def plan_recovery(survivors: Sequence[Survivor], options: RecoveryOptions) -> RecoveryPlan:
    """Return the plan; raise RecoveryRefusedError where there must not, or need not, be one."""
    check_belong_together(survivors)
    for one in survivors:
        if not one.voters.voters:
            raise RecoveryRefusedError(
                f"{one.directory} does not name the voters: its log has no VotersRecord, and "
                "quorum-state is missing. Give the configuration instead (--config), with "
                "controller.quorum.voters as it was"
            )
    check_recovery_is_needed(survivors)
    chosen = choose(
        survivors,
        node_id=options.node_id,
        allows_observer=options.allows_observer,
        allows_shorter_log=options.allows_shorter_log,
    )
    if chosen.end.offset == 0:
        raise RecoveryRefusedError(
            f"the log of node {chosen.key.id} ({chosen.directory}) is empty: there is nothing to "
            "recover. Format a new cluster"
        )
    return RecoveryPlan(
        chosen=chosen,
        survivors=tuple(survivors),
        forecast=forecast_of(chosen, survivors),
        epoch=_new_epoch(survivors),
        voter=_forced_voter(chosen, options),
    )


def _new_epoch(survivors: Sequence[Survivor]) -> int:
    epoch = max(one.epoch for one in survivors) + EPOCH_GAP
    if epoch >= EPOCH_MAX:
        raise RecoveryRefusedError(f"there is no epoch above {epoch - EPOCH_GAP} to go on in")
    return epoch


def _forced_voter(chosen: Survivor, options: RecoveryOptions) -> Voter:
    known = chosen.voters.by_id(chosen.key.id)
    endpoints = () if known is None else known.endpoints
    if options.address is not None:
        host, port = options.address
        endpoints = (Endpoint(_listener_name(chosen, options), host, port),)
    if chosen.kraft_version == 0:
        return Voter(ReplicaKey(chosen.key.id), endpoints)
    if chosen.key.directory_id is None:
        raise RecoveryRefusedError(
            f"{chosen.directory} has no directory.id in meta.properties, which a voter needs"
        )
    if not endpoints:
        raise RecoveryRefusedError(
            f"the address of node {chosen.key.id} as a controller is not known: name it with "
            f"--voters {chosen.key.id}@HOST:PORT"
        )
    if known is None or known.key != chosen.key:
        return Voter(chosen.key, endpoints, KRAFT_VERSION_MIN, KRAFT_VERSION_MAX)
    return known._replace(endpoints=endpoints)


def _listener_name(chosen: Survivor, options: RecoveryOptions) -> str:
    """Return the name of the controllers' listener: as configured, or as other voters have it."""
    own = chosen.voters.endpoints_of(chosen.key.id)
    others = [endpoint for voter in chosen.voters.voters for endpoint in voter.endpoints]
    recorded = next((endpoint.name for endpoint in (*own, *others)), _DEFAULT_LISTENER)
    return options.listener_name or recorded
