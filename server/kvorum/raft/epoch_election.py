"""An election in one epoch: which voters granted their vote, and whether they are enough."""

from kvorum.raft.quorum import is_election_lost, is_election_won
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.voter_set import VoterSet


class EpochElection:
    """The votes of an election so far; the nominee's own vote is counted at once.

    A nominee that is not one of the voters has no vote of its own.
    """

    def __init__(self, voters: VoterSet, *, own_key: ReplicaKey) -> None:
        own_voter = voters.voter_for(own_key)
        self._answers: dict[ReplicaKey, bool | None] = {
            voter.key: True if voter is own_voter else None for voter in voters.voters
        }

    def record(self, voter: ReplicaKey, *, is_granted: bool) -> bool:
        """Record a voter's answer; return whether it counts: only a voter's first one does."""
        if self._answers.get(voter, is_granted) is not None:
            return False
        self._answers[voter] = is_granted
        return True

    @property
    def granted(self) -> tuple[ReplicaKey, ...]:
        """The voters that granted their vote, in order of their ids."""
        return tuple(key for key, answer in self._answers.items() if answer is True)

    @property
    def unrecorded(self) -> tuple[ReplicaKey, ...]:
        """The voters that have not answered, in order of their ids."""
        return tuple(key for key, answer in self._answers.items() if answer is None)

    @property
    def is_granted(self) -> bool:
        """Whether a majority granted its vote."""
        return is_election_won(voter_count=len(self._answers), granted_count=len(self.granted))

    @property
    def is_rejected(self) -> bool:
        """Whether so many voters refused that a majority has become impossible."""
        return is_election_lost(
            voter_count=len(self._answers),
            granted_count=len(self.granted),
            unrecorded_count=len(self.unrecorded),
        )
