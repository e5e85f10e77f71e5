"""Everything that must hold in a simulated quorum, by number, and the count of the checks."""

from collections.abc import Iterable
from typing import Final, NamedTuple


class Property(NamedTuple):
    """One thing that must hold; P is for safety, L for liveness."""

    id: str
    meaning: str


P1: Final = Property("P1", "an epoch has at most one leader, ever")
P2: Final = Property("P2", "a node grants one vote in an epoch, durably before it says so")
P3: Final = Property("P3", "the stored epoch only grows, and no message names one not yet stored")
P4: Final = Property("P4", "logs that agree on a record agree on all before it")
P5: Final = Property("P5", "a leader has every committed record")
P6: Final = Property("P6", "what is committed is durable on a majority of the voters")
P7: Final = Property("P7", "a leader shows nothing before its epoch's first record is committed")
P8: Final = Property("P8", "a start after any crash succeeds, and starting twice is like once")
P9: Final = Property("P9", "snapshots are committed, whole, on batch boundaries, and cover the log")
P10: Final = Property("P10", "no stored batch is of an epoch above the node's")
P11: Final = Property("P11", "a leader changes voters one step at a time, each step overlapping")
P12: Final = Property("P12", "voters and kraft.version follow from snapshot and log alone")
P13: Final = Property("P13", "offsets are without gap and epochs do not fall")
P14: Final = Property("P14", "a removed voter does not come back unless asked for")
P15: Final = Property("P15", "a request meant for another node or cluster is refused")
P16: Final = Property("P16", "only members of its own latest voter set stand for election")
P17: Final = Property("P17", "the state machine hears everything once, in order, and when it leads")
P18: Final = Property("P18", "roles change only as the table of roles allows")
P19: Final = Property("P19", "work off the event loop does not touch the core")
P20: Final = Property("P20", "every request is answered fittingly, and none stops a node")
P21: Final = Property("P21", "a node whose durable files are damaged stops and does not guess")
P22: Final = Property("P22", "damaged records are neither applied nor served")
P23: Final = Property("P23", "answers and queues stay within what is configured")
P24: Final = Property("P24", "what is committed never changes on any disk")
P25: Final = Property("P25", "an acknowledged write is never lost, doubled or reordered")
P26: Final = Property("P26", "the high watermark does not fall, on a node or from leader to leader")
P27: Final = Property("P27", "no log is cut below the high watermark its node knew")
P28: Final = Property("P28", "asking for a pre-vote changes nothing that is stored for the epoch")
P29: Final = Property("P29", "a leader has the votes of a majority of voters, by id and directory")
P30: Final = Property("P30", "every node knows the target voters that were committed last")
P31: Final = Property("P31", "a step leads to the target voters, and waits for the one before it")
P32: Final = Property("P32", "a removal leaves a majority that fetches, and the leader goes last")
P33: Final = Property("P33", "voters change only as asked for by hand or by the target voters")
SAFETY: Final = (
    *(P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P11, P12, P13, P14),
    *(P15, P16, P17, P18, P19, P20, P21, P22, P23, P24, P25, P26, P27, P28),
    *(P29, P30, P31, P32, P33),
)

L1: Final = Property("L1", "a leader is there within ten election timeouts, after few epochs")
L2: Final = Property("L2", "every live replica finds the leader and catches up")
L3: Final = Property("L3", "the high watermark moves, and writes are acknowledged")
L4: Final = Property("L4", "a leader without its majority gives way within 1.5 fetch timeouts")
L5: Final = Property("L5", "a leader that keeps its majority is not replaced")
L6: Final = Property("L6", "no timer fires again and again without anything to do")
L7: Final = Property("L7", "a change of voters ends within two request timeouts; updates give way")
L8: Final = Property("L8", "nobody stays without a leader while one can be reached")
L9: Final = Property("L9", "target voters are reached once all of them run")
LIVENESS: Final = (L1, L2, L3, L4, L5, L6, L7, L8, L9)
ALL: Final = (*SAFETY, *LIVENESS)


class PropertyViolatedError(BaseException):
    """A property does not hold.

    It is not an Exception, so that nothing of a node that handles errors answers it and continues.
    """

    def __init__(self, broken: Property, text: str) -> None:
        self.broken = broken
        super().__init__(f"{broken.id} ({broken.meaning}) is broken: {text}")


class Checks:
    """The number of times each property was checked and held."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.include(ALL)

    def include(self, properties: Iterable[Property]) -> None:
        """Count the checks of further properties too."""
        self.counts |= {one.id: 0 for one in properties}

    def held(self, *properties: Property) -> None:
        """Note that properties were checked and hold."""
        for one in properties:
            self.counts[one.id] += 1

    def demand(self, checked: Property, text: str, *, holds: bool) -> None:
        """Count a check; raise PropertyViolatedError where it failed."""
        if not holds:
            raise PropertyViolatedError(checked, text)
        self.counts[checked.id] += 1
