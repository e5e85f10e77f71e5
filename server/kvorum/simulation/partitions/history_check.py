"""The check of a world's history by the code of ``kvorum check-history``.

Left out are the partitions of which an unclean election may have lost records, or that wait for an
operator. Where records are deleted or compacted, anomalies are excluded that this makes legal.
"""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.client_histories.anomalies import Anomaly, Legality, Settings
from kvorum.client_histories.check import Report, check_history
from kvorum.client_histories.reader import read_history
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.client_history import ClientHistory
from kvorum.simulation.partitions.committed_batches import Aborted, committed_batches
from kvorum.simulation.partitions.ledger import Replica
from kvorum.simulation.partitions.settings import ClusterSettings
from kvorum.simulation.partitions.stored_batches import batches_of
from kvorum.simulation.properties.catalogue import Checks
from kvorum.wire.records import RecordBatch

CASES_SHOWN: Final = 1
_GONE: Final = frozenset({Anomaly.LOST_WRITE, Anomaly.UNSEEN})
"""The anomalies of records that are gone before a consumer has read them."""
_DELETED: Final = _GONE | {Anomaly.DUPLICATE}
"""With its records the log may lose their producers, who then send a batch again unknown."""
_COMPACTED: Final = _GONE | {Anomaly.INT_POLL_SKIP, Anomaly.POLL_SKIP}
_WITHOUT_MARKERS: Final = _COMPACTED | {Anomaly.G1A}


class WrittenHistory(NamedTuple):
    """The lines of a history, and by what they are to be judged."""

    isolation: IsolationLevel
    lines: list[str]
    excluded: frozenset[Anomaly]


def written(
    history: ClientHistory,
    settings: ClusterSettings,
    left_out: Collection[int],
    *,
    transactions_end: bool,
) -> tuple[WrittenHistory, ...]:
    """Return the history of each isolation level."""
    return tuple(
        WrittenHistory(
            isolation,
            history.lines(isolation, left_out),
            excluded_anomalies(settings, isolation, transactions_end=transactions_end),
        )
        for isolation in IsolationLevel
    )


def excluded_anomalies(
    settings: ClusterSettings, isolation: IsolationLevel, *, transactions_end: bool
) -> frozenset[Anomaly]:
    """Return the anomalies that are legal in a world.

    Its records may not stay; and where transactions stay open, for want of their coordinator,
    consumers of committed records see nothing from the first one on.
    """
    excluded = _of_records(settings)
    if isolation is IsolationLevel.READ_COMMITTED and not transactions_end:
        excluded |= {Anomaly.UNSEEN}
    return excluded


def _of_records(settings: ClusterSettings) -> frozenset[Anomaly]:
    """Return the anomalies that are legal in a world because its records do not stay."""
    excluded = _DELETED if settings.deletes_records else frozenset[Anomaly]()
    if settings.is_compacted:
        excluded |= _COMPACTED if settings.keeps_markers else _WITHOUT_MARKERS
    return excluded


def read_to_the_end(history: ClientHistory, replica: Replica) -> None:
    """Read a replica from its start to its end, once with each isolation level."""
    for isolation in IsolationLevel:
        reader = history.reader(replica.index, isolation)
        reader.invoke()
        reader.poll(replica.log.log_start_offset, _batches(replica, isolation))


def _batches(replica: Replica, isolation: IsolationLevel) -> list[RecordBatch]:
    log = replica.log
    start = log.log_start_offset
    if isolation is IsolationLevel.READ_UNCOMMITTED:
        return list(batches_of(log, start, log.high_watermark))
    end = log.last_stable_offset
    found = log.aborted_transactions(start, end)
    aborted = [Aborted(one.producer_id, one.first_offset) for one in found]
    return list(committed_batches(batches_of(log, start, end), aborted))


def judge(history: WrittenHistory) -> Report:
    """Return what a history shows."""
    found = read_history(f"{line}\n".encode() for line in history.lines)
    is_read_committed = history.isolation is IsolationLevel.READ_COMMITTED
    judged_by = Settings(is_read_committed=is_read_committed, excluded=history.excluded)
    return check_history(found, judged_by, CASES_SHOWN)


def check(histories: Iterable[WrittenHistory], checks: Checks) -> None:
    """Check that histories are sound."""
    for history in histories:
        report = judge(history)
        message = f"{history.isolation.name.lower()}: {'; '.join(problems_of(report))}"
        checks.demand(promises.HISTORY_IS_SOUND, message, holds=report.is_sound)


def problems_of(report: Report) -> list[str]:
    """Return the anomalies that are never legal, each with the problem of its first case."""
    return [
        f"{kind.anomaly.label}: {kept[0].problem}"
        for kind, kept in report.kept.items()
        if kind.legality is Legality.NEVER
    ]
