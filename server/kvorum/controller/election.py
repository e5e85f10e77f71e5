"""The election of a partition's leader from the replicas that are in sync or eligible."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, unique

from kvorum.metadata.partition import NO_LEADER


@unique
class Election(Enum):
    """The kind of an election.

    PREFERRED moves the leadership to the first replica if that one can lead. ONLINE keeps the
    leader if it can still lead. UNCLEAN does the same as ONLINE, and as the last resort elects a
    replica that is not in sync.
    """

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class Candidates:
    """The input of an election.

    `is_acceptable` returns whether a replica can lead at all: its broker is active and its
    directory is online. `last_known_leader` is set only where it may be elected (KIP-966).
    """

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_leader: int | None
    is_acceptable: Callable[[int], bool]

    def is_valid(self, replica: int) -> bool:
        """Return whether `replica` can lead without loss of acknowledged records."""
        eligible = self.isr or self.elr
        return replica in eligible and self.is_acceptable(replica)


@dataclass(frozen=True, slots=True)
class Elected:
    """The outcome of an election: a replica or `NO_LEADER`, and whether records may be lost."""

    leader: int
    is_unclean: bool = False


def elect_leader(candidates: Candidates, election: Election) -> Elected:
    """Return the outcome of an election."""
    if election is Election.PREFERRED:
        order = (candidates.replicas[0], candidates.leader, *candidates.replicas[1:])
    else:
        order = (candidates.leader, *candidates.replicas)
    for replica in order:
        if candidates.is_valid(replica):
            return Elected(replica)
    if candidates.last_known_leader is not None:
        return Elected(candidates.last_known_leader, is_unclean=True)
    if election is Election.UNCLEAN:
        for replica in candidates.replicas:
            if candidates.is_acceptable(replica):
                return Elected(replica, is_unclean=True)
    return Elected(NO_LEADER)
