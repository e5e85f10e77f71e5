"""kraft.version from 0 to 1: from then on the log says who the voters are, and they can change.

Every voter must have told the leader of this epoch its directory id and that it can work at the
new version; then one batch holds the version and the voters.
"""

from __future__ import annotations

from kvorum.raft.replica import Replica
from kvorum.raft.roles import Leader
from kvorum.raft.transitions import IllegalMoveError
from kvorum.raft.voter_changes.appending import append_kraft_version
from kvorum.raft.voter_set import VoterSet


class KRaftVersionUpgradeError(Exception):
    """The kraft.version cannot become what was asked for; the text is Kafka's."""


class StaleEpochError(Exception):
    """An upgrade was asked for in another epoch than one that this replica leads."""


def upgrade_kraft_version(
    replica: Replica, now: float, *, epoch: int, kraft_version: int, validate_only: bool
) -> bool:
    """Append the new version, or only look whether that could be; False where it is in force.

    Raises KRaftVersionUpgradeError and StaleEpochError, both with Kafka's text.
    """
    leader = replica.role
    if not isinstance(leader, Leader):
        raise StaleEpochError(
            "Upgrade kraft version failed because the replica is not the current leader"
        )
    if epoch != leader.epoch:
        raise StaleEpochError(
            f"Upgrade kraft version failed because the given epoch {epoch} is stale. "
            f"Current leader epoch is {leader.epoch}"
        )
    current = replica.history.kraft_version
    if kraft_version == current:
        return False
    if kraft_version < current:
        raise KRaftVersionUpgradeError(
            f"Invalid upgrade of kraft.version from version {current} to {kraft_version} because "
            "the new version is a downgrade"
        )
    voters = _voters_that_support(leader, current=current, wanted=kraft_version)
    if voters.ids != replica.voters.ids:
        raise IllegalMoveError(f"the voters {replica.voters.ids} are known as {voters.ids}")
    if not validate_only:
        append_kraft_version(replica, leader, now, kraft_version=kraft_version, voters=voters)
        leader.volatile_voters = None
    return True


def _voters_that_support(leader: Leader, *, current: int, wanted: int) -> VoterSet:
    voters = leader.volatile_voters
    if voters is None:
        raise KRaftVersionUpgradeError(
            f"Invalid upgrade of kraft.version from version {current} to {wanted}"
        )
    for voter in voters.voters:
        is_known = voter.key.directory_id is not None
        if not is_known or not voter.kraft_version_min <= wanted <= voter.kraft_version_max:
            raise KRaftVersionUpgradeError(
                f"Invalid upgrade of kraft.version to {wanted} because not all of the voters "
                "support it"
            )
    return voters
