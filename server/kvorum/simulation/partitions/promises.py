"""The properties of every world of brokers, by number, and what a partition's state says of them.

The numbers go on from those of the quorum (`kvorum.simulation.properties.catalogue`).
"""

from typing import Final

from kvorum.metadata.partition import PartitionRegistration
from kvorum.simulation.properties.catalogue import Checks, Property

EPOCH_RISES: Final = Property("P34", "every change raises the partition epoch by one")
LEADER_IN_ISR: Final = Property("P35", "the leader is in the ISR")
ISR_OF_REPLICAS: Final = Property("P36", "the ISR is among the replicas and not eligible")
NEW_LEADER_EPOCH: Final = Property("P37", "a new leader has a new epoch")
LEADER_COMPLETE: Final = Property("P38", "a new leader has everything that was committed")
COMMITTED_IN_SYNC: Final = Property("P39", "what is committed is in sync everywhere")
ONE_RECORD: Final = Property("P40", "nobody reads two records at one offset")
ONE_BATCH: Final = Property("P41", "an offset and a leader epoch name one batch")
NO_TRUNCATION: Final = Property("P42", "no replica truncates below its high watermark")
WATERMARK_RISES: Final = Property("P43", "a leader's high watermark never falls")
WATERMARK_IN_LOG: Final = Property("P44", "the high watermark is within the log")
NOTHING_DELETED: Final = Property("P45", "nothing is deleted that nobody wants deleted")
READ_IS_COMMITTED: Final = Property("P46", "what is read is committed")
ACKNOWLEDGED: Final = Property("P47", "what is acknowledged is committed")
NOTHING_LOST: Final = Property("P48", "no acknowledged record is lost")
ONCE_IN_ORDER: Final = Property("P49", "an idempotent producer's records are there once, in order")
OFFSETS_KEPT: Final = Property("P50", "no committed offset is lost or goes back")
OFFSETS_KNOWN: Final = Property("P51", "an offset is one that was committed")
ONE_OWNER: Final = Property("P52", "in a generation a partition has one owner")
SOUND_DISK: Final = Property("P53", "a sound disk ends no broker")
READS_COMMITTED: Final = Property("P54", "read_committed gives committed transactions alone")
FETCHED_FROM_END: Final = Property("P55", "a follower fetches from its end, and names its epoch")
FENCED_STAY_AWAY: Final = Property("P56", "nobody fetches on in a leader epoch known to be over")
ENDED_PROCESS_IS_REFUSED: Final = Property("P57", "a fetch of an ended process is refused")
FORMER_CLIENTS_ASK_LEADERS: Final = Property(
    "P58", "clients that know of no followers read from leaders alone"
)
KNOWN_EPOCHS: Final = Property("P59", "a log has no epoch that its broker does not know")
STARTS_FOLLOW: Final = Property("P60", "a follower's log starts no further up than a leader's")
LATEST_STAYS: Final = Property("P61", "compaction leaves the latest record of each key")
ANSWERS_KNOWN: Final = Property("P62", "a request is answered with codes that its clients know")
LEADER_KNOWS: Final = Property("P63", "a generation's members are told to its leader alone")
ANSWERED_IN_TIME: Final = Property("P64", "who joins a generation waits for a rebalance at most")
FENCED_BY_ANOTHER: Final = Property("P65", "another one alone fences a static member")
SESSION_KEPT: Final = Property("P66", "a member is known for its session")
SIZE_KEPT: Final = Property("P67", "a generation is no larger than group.max.size")
STABLE_OFFSETS: Final = Property("P68", "a stable offset waits for open transactions")
SESSION_ANSWERED: Final = Property(
    "P69", "a fetch session answers for its partitions, from where they are read"
)
HISTORY_IS_SOUND: Final = Property("P70", "the history of the clients has no anomaly")
SESSIONS_END: Final = Property(
    "P71", "a client that has to log in is answered within its session alone"
)
LOGINS_BY_PASSWORD: Final = Property(
    "P72", "a login needs the password that the broker knows, and the user of the one before"
)
PERMITTED: Final = Property("P73", "a client writes and reads with the permission alone")
ONE_OWNER_AT_A_TIME: Final = Property(
    "P74", "a partition of a consumer group has one owner at a time"
)
MEMBER_EPOCH_RISES: Final = Property("P75", "the epoch of a member falls by a new join alone")
FENCED_ARE_REFUSED: Final = Property(
    "P76", "a member that has lost a partition unasked is refused until it joins again"
)
ONE_MEMBER: Final = Property("P77", "an acquired record has one member until it is let go")
ACCEPTED_ONCE: Final = Property("P78", "an accepted record is not delivered again")
DELIVERIES_COUNTED: Final = Property(
    "P79", "each delivery of a record has a higher count, up to the limit"
)
DONE_FOR_A_REASON: Final = Property(
    "P80", "a record is done with that a member is done with, or that was delivered often enough"
)
START_AFTER_DONE: Final = Property(
    "P81", "a share partition starts after no record that is not done with"
)
LETTERS_FOR_A_REASON: Final = Property(
    "P82", "a dead letter is of a record that was rejected, or delivered often enough"
)
LETTERS_ARE_WHOLE: Final = Property("P83", "a dead letter has the key and the value of its record")

WRITES_END: Final = Property("L10", "in peace every write is acknowledged")
ALL_IN_SYNC_AGAIN: Final = Property("L11", "in peace everybody is in sync again")
ALL_READABLE: Final = Property("L12", "in peace every replica can be read")
ALL_COMMITTED: Final = Property("L13", "in peace everything is committed")
ALL_THE_SAME: Final = Property("L14", "in peace all replicas are the same")
COMMITS_END: Final = Property("L15", "in peace every commit is acknowledged")
MEMBERS_SETTLE: Final = Property("L16", "in peace every member has its part")
TRANSACTIONS_END: Final = Property("L17", "in peace every transaction ends")
COMPACTED: Final = Property("L18", "in peace no key is twice in what may be compacted")
ONE_COORDINATOR: Final = Property("L19", "in peace a group has one coordinator")
IDLE_STAY_IN_SYNC: Final = Property("L20", "in peace a pause takes nobody out of an idle ISR")
DELETED_ARE_GONE: Final = Property("L21", "in peace no broker has a replica of a deleted topic")
TRANSACTIONS_REST: Final = Property("L22", "in peace every transactional id comes to rest")
ONE_TRANSACTION_STATE: Final = Property("L23", "in peace all have one state of a transactional id")
TARGETS_REACHED: Final = Property("L24", "in peace a consumer group is stable, each at its target")
ALL_SHARED: Final = Property("L25", "in peace a share group is done with every record")
ALL_HAVE_LETTERS: Final = Property(
    "L26", "in peace every record that no member accepted is in the dead-letter queue"
)

SAFETY: Final = (
    *(EPOCH_RISES, LEADER_IN_ISR, ISR_OF_REPLICAS, NEW_LEADER_EPOCH, LEADER_COMPLETE),
    *(COMMITTED_IN_SYNC, ONE_RECORD, ONE_BATCH, NO_TRUNCATION, WATERMARK_RISES, WATERMARK_IN_LOG),
    *(NOTHING_DELETED, READ_IS_COMMITTED, ACKNOWLEDGED, NOTHING_LOST, ONCE_IN_ORDER),
    *(OFFSETS_KEPT, OFFSETS_KNOWN, ONE_OWNER, SOUND_DISK, READS_COMMITTED, FETCHED_FROM_END),
    *(FENCED_STAY_AWAY, ENDED_PROCESS_IS_REFUSED, FORMER_CLIENTS_ASK_LEADERS, KNOWN_EPOCHS),
    *(STARTS_FOLLOW, LATEST_STAYS, ANSWERS_KNOWN, LEADER_KNOWS, ANSWERED_IN_TIME),
    *(FENCED_BY_ANOTHER, SESSION_KEPT, SIZE_KEPT, STABLE_OFFSETS),
    *(SESSION_ANSWERED, HISTORY_IS_SOUND, SESSIONS_END, LOGINS_BY_PASSWORD, PERMITTED),
    *(ONE_OWNER_AT_A_TIME, MEMBER_EPOCH_RISES, FENCED_ARE_REFUSED),
    *(ONE_MEMBER, ACCEPTED_ONCE, DELIVERIES_COUNTED, DONE_FOR_A_REASON, START_AFTER_DONE),
    *(LETTERS_FOR_A_REASON, LETTERS_ARE_WHOLE),
)
LIVENESS: Final = (
    *(WRITES_END, ALL_IN_SYNC_AGAIN, ALL_READABLE, ALL_COMMITTED, ALL_THE_SAME, COMMITS_END),
    *(MEMBERS_SETTLE, TRANSACTIONS_END, COMPACTED, ONE_COORDINATOR, IDLE_STAY_IN_SYNC),
    *(DELETED_ARE_GONE, TRANSACTIONS_REST, ONE_TRANSACTION_STATE),
    *(TARGETS_REACHED, ALL_SHARED, ALL_HAVE_LETTERS),
)
ALL: Final = (*SAFETY, *LIVENESS)


def check_change(
    before: PartitionRegistration, after: PartitionRegistration, checks: Checks
) -> None:
    """Check what every committed change keeps; raises PropertyViolatedError."""
    message = f"{before} became {after}"
    if after.has_leader:
        checks.demand(LEADER_IN_ISR, message, holds=after.leader in after.isr)
    is_of_replicas = set(after.isr) <= set(after.replicas)
    is_apart = not set(after.isr) & set(after.elr)
    checks.demand(ISR_OF_REPLICAS, message, holds=is_of_replicas and is_apart)
    is_next = after.partition_epoch == before.partition_epoch + 1
    checks.demand(EPOCH_RISES, message, holds=is_next)
    if after.leader != before.leader:
        is_new = after.leader_epoch == before.leader_epoch + 1
        checks.demand(NEW_LEADER_EPOCH, message, holds=is_new)


def is_unclean(before: PartitionRegistration, after: PartitionRegistration) -> bool:
    """Return whether a leader was elected, or let into the ISR, that may lack committed records.

    Who gives up a reassignment while only added replicas are in sync makes the ISR of the first
    replica, where the topic allows that (Kafka's PartitionReassignmentRevert).
    """
    is_elected = after.has_leader and after.leader_epoch > before.leader_epoch
    # Kafka elects the last known leader only where no other replica is eligible.
    may_lead = {*before.isr, *(before.elr or before.last_known_elr)}
    is_reverted = bool(before.adding_replicas) and not (
        set(before.adding_replicas) & set(after.replicas)
    )
    is_isr_lost = is_reverted and not set(before.isr) & set(after.isr)
    return is_isr_lost or (is_elected and after.leader not in may_lead)


def waits_for_an_operator(partition: PartitionRegistration) -> bool:
    """Return whether a partition stays as it is until an operator changes it, as it does in Kafka.

    Either no replica can be elected, because a former one alone is eligible: PartitionChangeBuilder
    keeps a member of the ISR that a reassignment removes in the ELR where too few are in sync, and
    elects no last known leader while the ELR has members. That takes an unclean election. Or a
    replica is both added and removed, because a second reassignment took back what the first was to
    add, and nothing else was new: that never ends, but can be cancelled.
    """
    elr = set(partition.elr)
    is_leaderless = not partition.has_leader and not partition.isr
    is_added_and_removed = set(partition.adding_replicas) & set(partition.removing_replicas)
    is_elr_gone = is_leaderless and bool(elr) and not elr & set(partition.replicas)
    return is_elr_gone or bool(is_added_and_removed)
