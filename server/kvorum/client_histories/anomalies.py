"""The anomalies of a history: the name, the meaning, and the circumstances in which it is legal."""

from dataclasses import dataclass
from enum import Enum


class Legality(Enum):
    """The weight of a case; only what is never legal breaks a history."""

    NEVER = "never legal"
    SUBSCRIBED = "legal with subscribe"
    NOT_ISOLATED = "legal, since Kafka does not isolate writes"
    UNCOMMITTED = "legal with read_uncommitted"
    NOT_IDEMPOTENT = "legal without idempotence"
    REPORTED = "reported"
    EXCLUDED = "excluded from the check"


class Anomaly(Enum):
    """The kind of a case: its name, its meaning, and every legality that a case of it may have."""

    INCONSISTENT_OFFSETS = (
        "inconsistent-offsets",
        "an offset of a key has more than one value",
        (Legality.NEVER,),
    )
    DUPLICATE = (
        "duplicate",
        "a value is at more than one offset of its key",
        (Legality.NEVER, Legality.NOT_IDEMPOTENT),
    )
    LOST_WRITE = (
        "lost-write",
        "a committed value was never polled, although one at a later offset was",
        (Legality.NEVER,),
    )
    UNSEEN = (
        "unseen",
        "an acknowledged value was never polled",
        (Legality.NEVER, Legality.REPORTED),
    )
    G1A = (
        "G1a",
        "a value was polled whose writer failed",
        (Legality.NEVER, Legality.UNCOMMITTED),
    )
    PRECOMMITTED_READ = (
        "precommitted-read",
        "a transaction polled what it sent itself",
        (Legality.NEVER, Legality.UNCOMMITTED),
    )
    G1C = (
        "G1c",
        "operations read from each other in a circle",
        (Legality.NEVER, Legality.NOT_ISOLATED, Legality.UNCOMMITTED),
    )
    G1C_PROCESS = (
        "G1c-process",
        "operations read from each other in a circle, with the order of a process",
        (Legality.NEVER, Legality.NOT_ISOLATED, Legality.UNCOMMITTED),
    )
    G1C_REALTIME = (
        "G1c-realtime",
        "operations read from each other in a circle, with the order in time",
        (Legality.NEVER, Legality.NOT_ISOLATED, Legality.UNCOMMITTED),
    )
    G0 = (
        "G0",
        "operations wrote after each other in a circle",
        (Legality.NOT_ISOLATED,),
    )
    G0_PROCESS = (
        "G0-process",
        "operations wrote after each other in a circle, with the order of a process",
        (Legality.NOT_ISOLATED,),
    )
    G0_REALTIME = (
        "G0-realtime",
        "operations wrote after each other in a circle, with the order in time",
        (Legality.NOT_ISOLATED,),
    )
    INT_POLL_SKIP = (
        "int-poll-skip",
        "one operation polled a key and left values out",
        (Legality.NEVER,),
    )
    INT_NONMONOTONIC_POLL = (
        "int-nonmonotonic-poll",
        "one operation polled a key and went back",
        (Legality.NEVER,),
    )
    POLL_SKIP = (
        "poll-skip",
        "a process left values out from one of its polls to the next",
        (Legality.NEVER, Legality.SUBSCRIBED),
    )
    NONMONOTONIC_POLL = (
        "nonmonotonic-poll",
        "a process went back from one of its polls to the next",
        (Legality.NEVER, Legality.SUBSCRIBED),
    )
    NONMONOTONIC_SEND = (
        "nonmonotonic-send",
        "a later send of a process has the lower offset",
        (Legality.NEVER,),
    )
    INT_NONMONOTONIC_SEND = (
        "int-nonmonotonic-send",
        "a later send of one operation has the lower offset",
        (Legality.NEVER,),
    )
    INT_SEND_SKIP = (
        "int-send-skip",
        "other values are between the sends of one transaction",
        (Legality.NOT_ISOLATED,),
    )
    CONSUME_COUNTS = (
        "consume-counts",
        "a process polled a value more than once in subscribed transactions",
        (Legality.REPORTED,),
    )
    REALTIME_LAG = (
        "realtime-lag",
        "the longest time for which a polled value had not been the newest",
        (Legality.REPORTED,),
    )

    def __init__(self, label: str, meaning: str, legalities: tuple[Legality, ...]) -> None:
        self.label = label
        self.meaning = meaning
        self.legalities = legalities


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the clients that wrote a history, as far as anomalies depend on them."""

    is_read_committed: bool = True
    """Whether consumers have `isolation.level=read_committed`."""
    is_idempotent: bool = True
    """Whether producers have `enable.idempotence=true`."""
    is_read_to_the_end: bool = True
    """Whether everything was polled at the end, after all faults."""
    excluded: frozenset[Anomaly] = frozenset()
    """The anomalies that something else makes legal, such as records that are deleted."""

    @property
    def of_dirty_reads(self) -> Legality:
        """The legality of reads from transactions that have not committed."""
        return Legality.NEVER if self.is_read_committed else Legality.UNCOMMITTED

    @property
    def of_duplicates(self) -> Legality:
        """The legality of a value at two offsets."""
        return Legality.NEVER if self.is_idempotent else Legality.NOT_IDEMPOTENT

    @property
    def of_unseen_values(self) -> Legality:
        """The legality of values that were never polled."""
        return Legality.NEVER if self.is_read_to_the_end else Legality.REPORTED
