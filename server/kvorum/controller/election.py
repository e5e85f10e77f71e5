"""Who leads a partition, given who is in sync, eligible and able."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, unique

from kvorum.metadata.partition import NO_LEADER


@unique
class Election(Enum):
    """What an election may do.

    PREFERRED moves the leadership to the first replica where it can. ONLINE keeps the leader
    where it can. UNCLEAN is ONLINE, and as the last resort takes a replica that is not in sync.
    """

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class Candidates:
    """Everything an election looks at.

    `is_acceptable` tells whether a replica could lead at all: its broker is active and its
    directory online. `last_known_leader` is set only where it may be chosen (KIP-966).
    """

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_leader: int | None
    is_acceptable: Callable[[int], bool]

    def is_valid(self, replica: int) -> bool:
        """Tell whether `replica` can lead without losing anything."""
        eligible = self.isr or self.elr
        return replica in eligible and self.is_acceptable(replica)


@dataclass(frozen=True, slots=True)
class Elected:
    """The outcome: a replica or `NO_LEADER`, and whether data may be lost by it."""

    leader: int
    is_unclean: bool = False


def elect_leader(candidates: Candidates, election: Election) -> Elected:
    """Return who is to lead."""
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
