"""The anomalies by which the histories of worlds name mistakes."""

from typing import Final, NamedTuple

from kvorum.client_histories.anomalies import Anomaly


class NamedMistake(NamedTuple):
    """A mistake by its name, the anomaly that fits it, and a world that shows it.

    `searched` is how many worlds were run until this one. They were those with coordinated
    transactions that keep every record, in the order of their seeds.
    """

    mistake: str
    anomaly: Anomaly
    seed: int
    searched: int


NAMED_MISTAKES: Final = (
    NamedMistake("a fetch of committed records goes on to the high watermark", Anomaly.G1A, 2, 1),
    NamedMistake("a follower indexes no transaction that was aborted", Anomaly.G1A, 2, 1),
    NamedMistake("a partition that gives no answer counts as done", Anomaly.G1A, 27, 6),
    NamedMistake("a producer begins while the transaction before is open", Anomaly.G1A, 2, 1),
    NamedMistake("a start forgets the transactions that are open", Anomaly.G1A, 27, 6),
    NamedMistake("a start indexes no transaction that was aborted", Anomaly.G1A, 20, 5),
    NamedMistake("a transaction is complete when its markers were tried once", Anomaly.G1A, 9, 2),
    NamedMistake("markers that are refused count as written", Anomaly.G1A, 27, 6),
    NamedMistake("the last stable offset is one too high", Anomaly.G1A, 2, 1),
    NamedMistake("a batch that is sent again is appended again", Anomaly.DUPLICATE, 2, 1),
    NamedMistake("producers of truncated records are remembered", Anomaly.DUPLICATE, 74, 14),
    NamedMistake("the window of sequences is one too wide", Anomaly.DUPLICATE, 2, 1),
    NamedMistake(
        "an aborted transaction that began before a fetch is not named", Anomaly.LOST_WRITE, 15, 4
    ),
    NamedMistake("an outcome that was decided is decided again", Anomaly.LOST_WRITE, 10, 3),
    NamedMistake("the first of several brokers alone is asked to commit", Anomaly.LOST_WRITE, 9, 2),
    NamedMistake("the markers of a commit abort", Anomaly.LOST_WRITE, 2, 1),
    NamedMistake("a leader takes what a fenced producer writes", Anomaly.UNSEEN, 2, 1),
    NamedMistake("a new coordinator forgets the outcomes that were decided", Anomaly.UNSEEN, 9, 2),
    NamedMistake("partitions that are added take the place of those before", Anomaly.UNSEEN, 9, 2),
    NamedMistake("a replica that is to leave the ISR has left it", Anomaly.INT_POLL_SKIP, 15, 4),
)
