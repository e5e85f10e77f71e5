"""The builder of a partition's change: from the wanted state to its record."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, unique

from kvorum.controller.partition_reassignment import Reassignment, complete_reassignment
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.partition import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECOVERING,
    PartitionRegistration,
)
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord


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


@dataclass(frozen=True, slots=True)
class PartitionRules:
    """The state that a change of one partition depends on.

    `is_acceptable_leader` returns whether a replica can lead. `default_directory` returns the log
    directory of a broker that becomes a replica.
    """

    version: MetadataVersion
    is_elr_enabled: bool
    min_insync_replicas: int
    is_acceptable_leader: Callable[[int], bool]
    default_directory: Callable[[int], bytes]


class PartitionChangeBuilder:
    """A builder that collects the changes of a partition; `record` returns them as one record.

    Set the attributes that are to change, then call `record` once.
    """

    def __init__(
        self,
        partition: PartitionRegistration,
        *,
        topic_id: bytes,
        index: int,
        rules: PartitionRules,
    ) -> None:
        self._partition = partition
        self._rules = rules
        self._record = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
        self._elr = partition.elr
        self.isr = partition.isr
        self.replicas = partition.replicas
        self.removing = partition.removing_replicas
        self.adding = partition.adding_replicas
        self.recovery_state = partition.leader_recovery_state
        self.directories = dict(zip(partition.replicas, partition.directories, strict=True))
        self.election = Election.ONLINE
        self.unclean_shutdown_replicas: tuple[int, ...] = ()

    def record(self) -> tuple[PartitionChangeRecord, int] | None:
        """Return the record and its version, or None where nothing changes.

        The order of the steps matters: each step sees the decisions of the earlier ones.
        """
        self._complete_reassignment()
        self._find_eligible_leaders()
        self._elect()
        self._bump_leader_epoch_for_removed_replicas()
        self._set_elr()
        self._set_isr()
        self._bump_leader_epoch_for_isr_shrink()
        self._set_last_known_leader()
        self._set_assignment()
        if self.recovery_state != self._partition.leader_recovery_state:
            self._record.leader_recovery_state = self.recovery_state
        if is_without_effect(self._record):
            return None
        return self._record, self._rules.version.partition_record_version

    def _complete_reassignment(self) -> None:
        completed = complete_reassignment(
            Reassignment(self.replicas, self.removing, self.adding), self.isr
        )
        if completed is not None:
            self.isr = completed.isr
            self.replicas = completed.replicas
            self.removing = self.adding = ()

    def _find_eligible_leaders(self) -> None:
        """Keep members that leave the ISR eligible while the ISR is below its minimum."""
        if not self._rules.is_elr_enabled:
            return
        if len(self.isr) >= self._rules.min_insync_replicas:
            self._elr = ()
            return
        gone = {*self.isr, *self.unclean_shutdown_replicas}
        self._elr = tuple(sorted({*self._partition.elr, *self._partition.isr} - gone))

    def _elect(self) -> None:
        partition, record = self._partition, self._record
        elected = elect_leader(
            Candidates(
                leader=partition.leader,
                replicas=self.replicas,
                isr=self.isr,
                elr=self._elr,
                last_known_leader=self._last_known_leader(),
                is_acceptable=self._rules.is_acceptable_leader,
            ),
            self.election,
        )
        if elected.leader == partition.leader:
            return
        record.leader = elected.leader
        if elected.leader in self._elr:
            self.isr = (elected.leader,)
            self._elr = tuple(replica for replica in self._elr if replica != elected.leader)
        if elected.is_unclean:
            record.isr = [elected.leader]
            if partition.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING

    def _last_known_leader(self) -> int | None:
        """Return the last known leader of a partition whose ISR and ELR are empty."""
        last_known = self._partition.last_known_elr
        if not self._rules.is_elr_enabled or self.isr or self._elr or len(last_known) != 1:
            return None
        return last_known[0] if self._rules.is_acceptable_leader(last_known[0]) else None

    def _bump_leader_epoch_for_removed_replicas(self) -> None:
        removed = set(self._partition.replicas) - set(self.replicas)
        if removed and self._record.leader == NO_LEADER_CHANGE:
            self._record.leader = self._partition.leader

    def _set_elr(self) -> None:
        is_unclean = self._record.isr is not None
        if is_unclean or not self._rules.is_elr_enabled:
            self._elr = ()
        if self._elr != self._partition.elr:
            self._record.eligible_leader_replicas = list(self._elr)

    def _set_isr(self) -> None:
        # Without ELR the last member stays in the ISR, so that it can come back as the leader.
        may_be_set = bool(self.isr) or self._rules.is_elr_enabled
        if self._record.isr is None and may_be_set and self.isr != self._partition.isr:
            self._record.isr = list(self.isr)

    def _bump_leader_epoch_for_isr_shrink(self) -> None:
        record = self._record
        if (
            self._rules.version.bumps_leader_epoch_on_isr_shrink
            and record.leader == NO_LEADER_CHANGE
            and record.isr is not None
            and set(self._partition.isr) - set(record.isr)
        ):
            record.leader = self._partition.leader

    def _set_last_known_leader(self) -> None:
        if not self._rules.is_elr_enabled:
            return
        last_known = self._partition.last_known_elr
        if self._record.leader == NO_LEADER and not last_known:
            self._record.last_known_elr = [self._partition.leader]
        elif self._record.leader >= 0 and last_known:
            self._record.last_known_elr = []

    def _set_assignment(self) -> None:
        partition, record = self._partition, self._record
        if self.replicas:
            self._set_directories()
            if self.replicas != partition.replicas:
                record.replicas = list(self.replicas)
        if self.removing != partition.removing_replicas:
            record.removing_replicas = list(self.removing)
        if self.adding != partition.adding_replicas:
            record.adding_replicas = list(self.adding)

    def _set_directories(self) -> None:
        if not self._rules.version.supports_directory_assignment:
            return
        directories = [
            self.directories[replica]
            if replica in self.directories
            else self._rules.default_directory(replica)
            for replica in self.replicas
        ]
        if tuple(directories) != self._partition.directories:
            self._record.directories = directories


def is_without_effect(record: PartitionChangeRecord) -> bool:
    """Return whether `record` names a partition without any change."""
    return (
        record.leader == NO_LEADER_CHANGE
        and record.leader_recovery_state == NO_RECOVERY_CHANGE
        and all(
            field is None
            for field in (
                record.isr,
                record.replicas,
                record.removing_replicas,
                record.adding_replicas,
                record.eligible_leader_replicas,
                record.last_known_elr,
                record.directories,
            )
        )
    )
