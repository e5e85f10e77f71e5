"""The anomalies of the log of a key: its offsets, its duplicates, and values that are missing."""

from functools import partial
from typing import Final

from kvorum.client_histories.anomalies import Anomaly, Legality, Settings
from kvorum.client_histories.findings import Facts, Findings, Strip
from kvorum.client_histories.history import FAIL, OK, TXN, History
from kvorum.client_histories.key_entries import POLLED, SENT
from kvorum.client_histories.key_log import KeyLog

_USERS_SHOWN_MAX: Final = 6
"""A value may have been polled by every process: a case shows some of the operations."""


class LogAnomalies:
    """The search for anomalies in the logs of a history, one key at a time."""

    def __init__(
        self, history: History, committed: bytearray, settings: Settings, findings: Findings
    ) -> None:
        self._history = history
        self._committed = committed
        self._settings = settings
        self._findings = findings

    def find(self, log: KeyLog) -> None:
        """Add what the log of a key shows to the findings."""
        self._find_inconsistent_offsets(log)
        self._find_duplicates(log)
        self._find_missing_values(log)
        self._find_dirty_reads(log)

    def _find_inconsistent_offsets(self, log: KeyLog) -> None:
        for offset in sorted(log.other_values):
            self._findings.add(
                Anomaly.INCONSISTENT_OFFSETS,
                Legality.NEVER,
                partial(_inconsistent, log, offset),
            )

    def _find_duplicates(self, log: KeyLog) -> None:
        for value, offsets in log.repeated.items():
            self._findings.add(
                Anomaly.DUPLICATE,
                self._settings.of_duplicates,
                partial(_repeated, log, value, offsets),
            )

    def _find_missing_values(self, log: KeyLog) -> None:
        """Find the values that were lost or not seen; those of no offset cannot be called lost."""
        firsts = log.first_offsets
        bound = max((firsts[value] for value in log.polled), default=-1)
        for value, writer in log.writers.items():
            if value in log.polled:
                continue
            if self._history.outcomes[writer] == OK:
                self._add_unseen(log, value, writer)
            last = log.last_offsets.get(value, firsts.get(value))
            if self._committed[writer] and last is not None and last <= bound:
                self._add_lost(log, value, writer, last)

    def _add_unseen(self, log: KeyLog, value: int, writer: int) -> None:
        self._findings.add(
            Anomaly.UNSEEN,
            self._settings.of_unseen_values,
            lambda: Facts(
                f"value {value}{_at(log, value)} was acknowledged, and no ok operation polled it",
                (writer,),
                (_strip(log, *_offset_of(log, value)),),
            ),
        )

    def _add_lost(self, log: KeyLog, value: int, writer: int, last: int) -> None:
        def facts() -> Facts:
            later, polled = next(
                (offset, value)
                for offset in log.offsets
                for value in log.values_at(offset)
                if offset >= last and value in log.polled
            )
            return Facts(
                f"value {value} at offset {last} was committed, and no ok operation polled it; "
                f"value {polled} at offset {later} was polled",
                (writer, self._first_reader(log, polled)),
                (_strip(log, last),),
            )

        self._findings.add(Anomaly.LOST_WRITE, Legality.NEVER, facts)

    def _first_reader(self, log: KeyLog, value: int) -> int:
        """Return the first operation of the outcome ok that polled a value."""
        return next(
            operation
            for operation, mark, _, found in log.entries
            if found == value and mark == POLLED and self._history.outcomes[operation] == OK
        )

    def _find_dirty_reads(self, log: KeyLog) -> None:
        history = self._history
        dirty: set[int] = set()
        for operation, mark, offset, value in log.entries:
            if mark != POLLED:
                continue
            writer = log.writers.get(value)
            if writer is None:
                continue
            if writer == operation:
                self._add_precommitted_read(log, operation, offset, value)
            elif (
                history.outcomes[writer] == FAIL
                and history.outcomes[operation] == OK
                and value not in dirty
            ):
                dirty.add(value)
                self._add_aborted_read(log, operation, offset, value)

    def _add_precommitted_read(self, log: KeyLog, operation: int, offset: int, value: int) -> None:
        self._findings.add(
            Anomaly.PRECOMMITTED_READ,
            self._settings.of_dirty_reads,
            lambda: Facts(
                f"the operation sent value {value} and polled it at offset {offset}",
                (operation,),
                (_strip(log, offset),),
            ),
        )

    def _add_aborted_read(self, log: KeyLog, operation: int, offset: int, value: int) -> None:
        writer = log.writers[value]
        is_txn = self._history.kinds[writer] == TXN
        self._findings.add(
            Anomaly.G1A,
            # A send outside of transactions that failed is in no log, at any isolation level.
            self._settings.of_dirty_reads if is_txn else Legality.NEVER,
            lambda: Facts(
                f"value {value} was polled at offset {offset}, and its writer failed",
                (writer, operation),
                (_strip(log, offset),),
            ),
        )


def _inconsistent(log: KeyLog, offset: int) -> Facts:
    values = log.values_at(offset)
    return Facts(
        f"offset {offset} has the values {_listed(values)}",
        _users(log, values, offset),
        (_strip(log, offset),),
    )


def _repeated(log: KeyLog, value: int, offsets: list[int]) -> Facts:
    return Facts(
        f"value {value} is at the offsets {_listed(offsets)}",
        _users(log, (value,)),
        (_strip(log, *offsets),),
    )


def _users(log: KeyLog, values: tuple[int, ...], offset: int | None = None) -> list[int]:
    """Return some operations that sent values or polled them, from one offset if it is given."""
    found: list[int] = []
    for operation, mark, at, value in log.entries:
        is_use = mark == SENT or (mark == POLLED and offset in {None, at})
        if is_use and value in values and operation not in found:
            found.append(operation)
            if len(found) == _USERS_SHOWN_MAX:
                break
    return found


def _strip(log: KeyLog, *offsets: int) -> Strip:
    return Strip(log.name, log.strip(*offsets), offsets)


def _offset_of(log: KeyLog, value: int) -> tuple[int, ...]:
    offset = log.first_offsets.get(value)
    return () if offset is None else (offset,)


def _at(log: KeyLog, value: int) -> str:
    offset = log.first_offsets.get(value)
    return ", of unknown offset," if offset is None else f" at offset {offset}"


def _listed(numbers: tuple[int, ...] | list[int]) -> str:
    return ", ".join(map(str, numbers))
