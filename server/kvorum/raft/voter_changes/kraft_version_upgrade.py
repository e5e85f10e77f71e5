"""The upgrade of kraft.version from 0 to 1, from which on the log holds the voters.

At 0 the voters are those of ``controller.quorum.voters``: they are known by their ids, and do not
change. At 1 they are records of the log, each with its directory id, endpoints and versions: votes
name the directory too, quorum-state has another form, and voters can be added, removed, updated and
reassigned (KIP-853). There is no way back.

For the upgrade every voter must have reported its directory id to the leader of this epoch, and
that it can work at the new version. Then the leader appends one batch with version and voters.
"""

from kvorum.raft.errors import IllegalMoveError, KRaftVersionUpgradeError
from kvorum.raft.replica import Replica
from kvorum.raft.roles import Leader
from kvorum.raft.voter_changes.voters_records import append_kraft_version
from kvorum.raft.voter_set import VoterSet


def upgrade_kraft_version(
    replica: Replica, now: float, *, epoch: int, kraft_version: int, validate_only: bool
) -> bool:
    """Append the new version, or only check the upgrade; return False where it is in force.

    Raises KRaftVersionUpgradeError and NotLeaderError, both with Kafka's text.
    """
    leader = replica.leader_in(epoch, action="Upgrade kraft version")
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
