"""Producer snapshots and transaction indexes compared with the log, by a replay of its batches.

The replay is that of a follower's start: `kvorum.storage.log.producer_state`. Where the log does
not reach back to offset 0, or has gaps, less can be known than was stored, and only what is known
is compared.
"""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kvorum.inspection.log_check.findings import Findings, Rule, Severity
from kvorum.inspection.log_check.listing import read_whole
from kvorum.storage.errors import CorruptFileError
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.producer_snapshot import decode_producer_snapshot
from kvorum.storage.log.producer_state import (
    NO_COORDINATOR,
    ProducerEntry,
    ProducerError,
    ProducerState,
)
from kvorum.storage.log.transaction_index import AbortedTransaction
from kvorum.wire.errors import WireError
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.legacy import Entry

_ENTRY: Final = struct.Struct(">hqqqq")


class ProducerCheck:
    """One replay of a log, in the order of its batches."""

    def __init__(self, snapshots: Mapping[int, Path], findings: Findings) -> None:
        self.aborted: list[AbortedTransaction] = []
        """The transactions that the segment being read aborts."""
        self._markers: dict[int, int] = {}
        self._findings = findings
        self._state = ProducerState()
        self._is_whole = True
        self._has_gaps = False
        self._is_trusted = True
        self._end_offset: int | None = None
        self._first_offset = 0
        self._waiting = sorted(snapshots.items(), reverse=True)

    def begin_segment(self) -> None:
        """Forget the transactions of the segment before."""
        self.aborted.clear()
        self._markers.clear()

    def note_damage(self) -> None:
        """From here on the replay has not seen all batches."""
        self._is_trusted = False

    def take(self, file: Path, entry: Entry) -> None:
        """Replay one batch."""
        first = entry.base_offset if isinstance(entry, RecordBatch) else self._end_offset or 0
        if self._end_offset is None:
            self._first_offset = first
        elif first != self._end_offset:
            self._has_gaps = True
        if first != (self._end_offset or 0):
            self._is_whole = False
        self._compare_up_to(first)
        self._end_offset = entry.last_offset + 1
        if isinstance(entry, RecordBatch) and entry.has_producer_id and self._is_trusted:
            self._replay(file, entry)

    def _replay(self, file: Path, batch: RecordBatch) -> None:
        if batch.is_control:
            self._markers[batch.base_offset] = batch.producer_id
        try:
            ended = self._state.append(batch, AppendOrigin.REPLICATION)
        except (ProducerError, WireError) as error:
            self._findings.add(
                Rule.RECORDS, file, str(error), position=batch.position, offset=batch.base_offset
            )
            self._is_trusted = False
            return
        if ended is None:
            return
        if ended.is_aborted:
            stable = self._state.last_stable_offset(ended)
            self.aborted.append(
                AbortedTransaction(ended.producer_id, ended.first_offset, ended.last_offset, stable)
            )
        self._state.complete(ended)
        self._state.on_high_watermark(ended.last_offset + 1)

    def at_end(self, end_offset: int, *, is_end_known: bool) -> None:
        """Compare the snapshots that are left with the end of the log."""
        self._compare_up_to(end_offset)
        for offset, path in reversed(self._waiting):
            self._decoded(path)
            if offset > end_offset and is_end_known:
                problem = f"it was taken at offset {offset}, and the log ends at {end_offset}"
                self._findings.add(Rule.LOG_END, path, problem, offset=end_offset)

    def _compare_up_to(self, offset: int) -> None:
        """Compare the snapshots that were taken at `offset` or below, before what is there."""
        while self._waiting and self._waiting[-1][0] <= offset:
            taken_at, path = self._waiting.pop()
            stored = self._decoded(path)
            if stored is not None and self._is_trusted:
                self._compare(path, taken_at, stored)

    def _decoded(self, path: Path) -> dict[int, ProducerEntry] | None:
        data = read_whole(path, self._findings)
        if data is None:
            return None
        try:
            return decode_producer_snapshot(data, path)
        except CorruptFileError as error:
            self._findings.add(Rule.PRODUCER_SNAPSHOT, path, error.problem, position=0)
            return None

    def _compare(self, path: Path, offset: int, stored: dict[int, ProducerEntry]) -> None:
        for producer_id, entry in stored.items():
            problem = self._problem_of_entry(producer_id, entry, offset)
            if problem is not None:
                text = f"producer {producer_id}: {problem}"
                self._findings.add(Rule.PRODUCER_SNAPSHOT, path, text, offset=offset)
                return

    def _problem_of_entry(self, producer_id: int, stored: ProducerEntry, offset: int) -> str | None:
        last = stored.batches[-1].last_offset if stored.batches else -1
        if last >= offset or (stored.transaction_start or 0) > offset:
            return f"offset {max(last, stored.transaction_start or 0)} is behind the snapshot"
        known = self._state.entries.get(producer_id)
        if known is None:
            is_missing = self._is_whole or last >= self._first_offset
            has_gone = last < 0 or not self._is_whole
            return None if not is_missing or has_gone else f"the log has no batch of it at {last}"
        known = _as_stored(known)
        is_equal = known == stored if self._is_whole else self._may_be(known, stored)
        return None if is_equal else f"{_text(stored)}, and the log says {_text(known)}"

    def _may_be(self, known: ProducerEntry, stored: ProducerEntry) -> bool:
        """Return whether an entry agrees with what a part of the log says of the producer."""
        if self._has_gaps:
            # Compaction keeps a producer's last batch, without its records perhaps.
            known = known._replace(last_timestamp=stored.last_timestamp)
            known = _as_stored(known)
        if known.coordinator_epoch == NO_COORDINATOR:
            known = known._replace(coordinator_epoch=stored.coordinator_epoch)
        if known.transaction_start is None and (stored.transaction_start or 0) < self._first_offset:
            known = known._replace(transaction_start=stored.transaction_start)
        if not known.batches:
            known = known._replace(batches=stored.batches)
        return known == stored

    def check_index(self, path: Path, data: bytes, *, is_last: bool) -> None:
        """Compare a transaction index with the segment that was just read."""
        if not self._is_trusted:
            return
        expected = {transaction.last_offset: transaction for transaction in self.aborted}
        last = -1
        for position in range(0, len(data) - _ENTRY.size + 1, _ENTRY.size):
            version, *fields = _ENTRY.unpack_from(data, position)
            entry = AbortedTransaction(*fields)
            problem = None if version == 0 else f"version {version}"
            problem = problem or self._problem_of_transaction(entry, expected, last)
            if problem is not None:
                self._findings.add(
                    Rule.TRANSACTION_INDEX,
                    path,
                    problem,
                    position=position,
                    offset=entry.last_offset,
                )
                return
            expected.pop(entry.last_offset, None)
            last = entry.last_offset
        self._check_end(path, data, expected, is_last=is_last)

    def _check_end(
        self, path: Path, data: bytes, missing: dict[int, AbortedTransaction], *, is_last: bool
    ) -> None:
        if is_last and missing:
            data = self._read_again(path, data, missing)
        rest = len(data) % _ENTRY.size
        if rest:
            severity = Severity.TORN_TAIL if is_last and missing else Severity.DAMAGE
            problem = f"the last entry is cut off after {rest} bytes"
            rule = Rule.TORN_TAIL if severity is Severity.TORN_TAIL else Rule.TRANSACTION_INDEX
            self._findings.add(rule, path, problem, position=len(data) - rest, severity=severity)
        elif missing:
            first = min(missing.values(), key=lambda transaction: transaction.last_offset)
            problem = f"it lacks the transaction that was aborted at offset {first.last_offset}"
            self._findings.add(
                Rule.TRANSACTION_INDEX, path, problem, position=len(data), offset=first.last_offset
            )

    def _read_again(self, path: Path, data: bytes, missing: dict[int, AbortedTransaction]) -> bytes:
        """Return what an index has by now, and take from `missing` what is behind `data` in it.

        A running node may have aborted transactions after the index was read, and before the size
        of the log was taken. What it has aborted since then is not looked at.
        """
        whole = read_whole(path, self._findings)
        if whole is None or len(whole) <= len(data) or not whole.startswith(data):
            return data
        begin = len(data) - len(data) % _ENTRY.size
        for position in range(begin, len(whole) - _ENTRY.size + 1, _ENTRY.size):
            version, *fields = _ENTRY.unpack_from(whole, position)
            entry = AbortedTransaction(*fields)
            if version == 0 and self._problem_of_transaction(entry, missing, -1) is None:
                missing.pop(entry.last_offset, None)
        return whole[: len(whole) - len(whole) % _ENTRY.size]

    def _problem_of_transaction(
        self, entry: AbortedTransaction, expected: Mapping[int, AbortedTransaction], last: int
    ) -> str | None:
        if entry.last_offset <= last:
            return f"the marker at {entry.last_offset} follows the one at {last}"
        known = expected.get(entry.last_offset)
        if known is None:
            is_ended = self._markers.get(entry.last_offset) == entry.producer_id
            if self._is_whole or not is_ended:
                return f"{entry}, and the log has no such transaction"
            known = entry
        if self._is_whole:
            return None if entry == known else f"{entry}, and the log says {known}"
        is_possible = (
            entry.producer_id == known.producer_id
            and self._may_be_lower(entry.first_offset, known.first_offset)
            and self._may_be_lower(entry.last_stable_offset, known.last_stable_offset)
        )
        return None if is_possible else f"{entry}, and the log says {known}"

    def _may_be_lower(self, stored: int, known: int) -> bool:
        """Return whether batches that are gone may be the reason for a lower offset."""
        return stored == known or 0 <= stored < (known if self._has_gaps else self._first_offset)


def _as_stored(entry: ProducerEntry) -> ProducerEntry:
    """Return what a snapshot keeps of a producer: its last batch, and one timestamp."""
    last = tuple(batch._replace(timestamp=entry.last_timestamp) for batch in entry.batches[-1:])
    return entry._replace(batches=last)


def _text(entry: ProducerEntry) -> str:
    last = entry.batches[-1] if entry.batches else None
    return (
        f"epoch {entry.epoch}, coordinator epoch {entry.coordinator_epoch}, last batch {last}, "
        f"timestamp {entry.last_timestamp}, open transaction {entry.transaction_start}"
    )
