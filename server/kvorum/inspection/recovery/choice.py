"""The directory that a quorum is recovered from; and whether it has to be recovered at all."""

from collections.abc import Sequence
from itertools import combinations

from kvorum.inspection.recovery.survivor import RecoveryRefusedError, Survivor


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
