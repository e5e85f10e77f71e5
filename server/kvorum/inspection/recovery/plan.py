"""The plan of a recovery: which directory goes on, with which voters, in which epoch, at what cost.

The forecast says what it keeps and what it may lose, as exactly as can be known.
Let the chosen log end at offset `n` with a record of epoch `e`. The leader of `e` was elected with
every record in its log that was committed in an earlier epoch, and the chosen log is a first part
of that leader's log. So

- a record that was acknowledged in an epoch below `e` is in the log;
- a record of epoch `e` is in the log exactly if its offset is below `n`;
- a record of an epoch above `e` is not.

`keeps` is this rule. It holds for any log. What remains unknown is whether the lost controllers
have acknowledged records that the rule leaves out; that they cannot have is known only if no
majority of the voters lacks a survivor.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from kvorum.inspection.recovery.survivor import Committed, RecoveryRefusedError, Survivor
from kvorum.raft import Endpoint, ReplicaKey
from kvorum.raft.election_record import EPOCH_MAX
from kvorum.raft.kraft_version import KRAFT_VERSION_MAX, KRAFT_VERSION_MIN
from kvorum.raft.voter import Voter
from kvorum.raft.voter_set import VoterSet
from kvorum.storage.small_files.quorum_state import QuorumState
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

EPOCH_GAP = 1000
"""The distance of the new epoch from the highest one that is known.

The lost controllers may have elected leaders in epochs that no given directory names. A broker that
has heard of such an epoch refuses every leader below it, for ever; a gap costs nothing.
"""
_DEFAULT_LISTENER = "CONTROLLER"


class Loss(Enum):
    """The knowledge of acknowledged records that the chosen log lacks."""

    NONE = "none"
    NONE_UNLESS_VOTERS_CHANGED = "none unless the voters were changed without any survivor"
    POSSIBLE = "possible"
    CERTAIN = "certain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The part that is kept of a log that becomes the quorum's only one.

    `kept` is its end. `committed` is what is known to be committed, from all directories.
    `lost_ids` are the voters without a directory. `is_leader_of_last_epoch` is whether the chosen
    node led the epoch of its last record: then it had every record of that epoch, unless a power
    cut has shortened its log.
    """

    kept: OffsetAndEpoch
    committed: Committed
    lost_ids: tuple[int, ...]
    loss: Loss
    is_leader_of_last_epoch: bool

    @property
    def unproven_count(self) -> int:
        """The number of kept records which may never have been committed; recovery commits them."""
        return max(self.kept.offset - self.committed.end.offset, 0)


def forecast_of(chosen: Survivor, survivors: Sequence[Survivor]) -> Forecast:
    """Return what is kept and lost if the quorum goes on with the log of `chosen`."""
    committed = max((one.committed for one in survivors), key=lambda known: known.end)
    lost: set[int] = set()
    for voters in _possible_voter_sets(survivors):
        lost.update(_lost_ids(voters, survivors))
    return Forecast(
        kept=chosen.end,
        committed=committed,
        lost_ids=tuple(sorted(lost)),
        loss=_loss(chosen, survivors, committed),
        is_leader_of_last_epoch=chosen.last_leader_id == chosen.key.id,
    )


def _loss(chosen: Survivor, survivors: Sequence[Survivor], committed: Committed) -> Loss:
    if chosen.end < committed.end:
        return Loss.CERTAIN
    is_longest = all(one.end <= chosen.end for one in survivors if one.is_voter)
    sets = list(_possible_voter_sets(survivors))
    # Whether voters without a directory may be a majority.
    may_commit_alone = any(len(_lost_ids(each, survivors)) >= each.majority for each in sets)
    if not is_longest or not sets or may_commit_alone:
        return Loss.POSSIBLE
    is_fixed = all(one.kraft_version == 0 for one in survivors)
    return Loss.NONE if is_fixed else Loss.NONE_UNLESS_VOTERS_CHANGED


def _lost_ids(voters: VoterSet, survivors: Sequence[Survivor]) -> list[int]:
    return [
        voter.key.id
        for voter in voters.voters
        if not any(voter.is_replica(one.key) for one in survivors)
    ]


def _possible_voter_sets(survivors: Sequence[Survivor]) -> Iterator[VoterSet]:
    """Yield each voter set that may have been in force after the last proof of a commit."""
    committed = max(one.committed.end for one in survivors)
    for one in survivors:
        if one.voters.voters:
            yield one.voters
        before = [record for record in one.recorded if record.end <= committed]
        later = [record for record in one.recorded if record.end > committed]
        for record in (*before[-1:], *later):
            yield record.voters


def check_belong_together(survivors: Sequence[Survivor]) -> None:
    """Raise RecoveryRefusedError unless these are different nodes of one cluster."""
    for one, other in combinations(survivors, 2):
        if one.cluster_id != other.cluster_id:
            raise RecoveryRefusedError(
                f"{one.directory} belongs to the cluster {one.cluster_id}, and {other.directory} "
                f"to {other.cluster_id}: name directories of one cluster"
            )
        if one.key.id == other.key.id:
            raise RecoveryRefusedError(
                f"{one.directory} and {other.directory} both belong to node {one.key.id}: name "
                "the one that the node used last"
            )


def check_recovery_is_needed(survivors: Sequence[Survivor]) -> None:
    """Raise RecoveryRefusedError where the survivors can elect a leader by themselves."""
    for one in survivors:
        granting = [
            other for other in survivors if one.voters.is_voter(other.key) and other.end <= one.end
        ]
        if one.is_voter and len(granting) >= one.voters.majority:
            ids = ", ".join(str(other.key.id) for other in granting)
            raise RecoveryRefusedError(
                f"No recovery is needed: {ids} are {len(granting)} of {len(one.voters.voters)} "
                "voters, a majority. Start these nodes, and they elect a leader without any loss; "
                "then replace the lost voters with kvorum quorum reassign, or with "
                "remove-controller and add-controller"
            )


def choose(
    survivors: Sequence[Survivor],
    *,
    node_id: int | None,
    allows_observer: bool,
    allows_shorter_log: bool,
) -> Survivor:
    """Return the survivor of an id, or the voter with the longest log; the lowest id among equals.

    Of two logs the one with the higher last epoch is longer, and the one that ends later where the
    epochs are equal. Raises RecoveryRefusedError for a log that is not the longest, and for a node
    that is not a voter, unless that is allowed.
    """
    ordered = sorted(survivors, key=lambda one: one.key.id)
    if node_id is not None:
        chosen = next((one for one in ordered if one.key.id == node_id), None)
        if chosen is None:
            raise RecoveryRefusedError(f"none of the directories belongs to node {node_id}")
    else:
        candidates = [one for one in ordered if one.is_voter or allows_observer]
        # `max` takes the first of equals; a voter goes before an observer with the same log.
        candidates.sort(key=lambda one: not one.is_voter)
        chosen = max(candidates or ordered, key=lambda one: one.end)
    _check_choice(chosen, ordered, allows_observer=allows_observer, allows_any=allows_shorter_log)
    return chosen


def _check_choice(
    chosen: Survivor, survivors: Sequence[Survivor], *, allows_observer: bool, allows_any: bool
) -> None:
    if not chosen.is_voter and not allows_observer:
        raise RecoveryRefusedError(
            f"node {chosen.key.id} ({chosen.directory}) is no voter of the quorum that it knows, "
            f"{list(chosen.voters.ids)}. An observer's log may be the best one left: "
            "--allow-observer makes it the first voter"
        )
    longest = max(survivors, key=lambda one: one.end)
    if longest.end > chosen.end and not allows_any:
        raise RecoveryRefusedError(
            f"the log of node {longest.key.id} ({longest.directory}) is longer: it ends at offset "
            f"{longest.end.offset} with epoch {longest.end.epoch}, that of node {chosen.key.id} at "
            f"{chosen.end.offset} with epoch {chosen.end.epoch}. Recover from it"
            f"{'' if longest.is_voter else ' with --allow-observer'}, or give up the difference "
            "with --allow-shorter-log"
        )


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
