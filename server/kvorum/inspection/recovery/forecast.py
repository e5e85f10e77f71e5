"""The forecast of a recovery: what it keeps and what it may lose, as exactly as can be known.

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

from kvorum.inspection.recovery.log_facts import Committed
from kvorum.inspection.recovery.survivor import Survivor
from kvorum.raft.voter_set import VoterSet
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


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
