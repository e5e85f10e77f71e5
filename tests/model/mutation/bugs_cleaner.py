"""Bugs that Kafka had in the compaction of logs and in the deletion of old segments."""

from __future__ import annotations

from tests.model.mutation.mutant import Kind, mutant

_VALUES = "the last value of each key stays"
_MARKERS = "a transaction's end is known as long as its data"
_CLEANED = "a log is cleaned again and again"

MUTANTS = (
    mutant(
        id="KAFKA-14055",
        cause="keys of transaction markers stood in the offset map beside those of users",
        breaks=_MARKERS,
        kind=Kind.SAFETY,
        within="BatchFilter._fates",
        old="is_control = batch.is_control",
        new="is_control = False",
    ),
    mutant(
        id="KAFKA-8351",
        cause="an aborted transaction was not carried on into the next segment",
        breaks=_MARKERS,
        kind=Kind.SAFETY,
        within="Cleaner._cleaned",
        old="rules.transactions.add_aborted(_aborted(log, segment.base_offset, bound))",
        new="rules.transactions.add_aborted(segment.transaction_index.entries)",
    ),
    mutant(
        id="KAFKA-13727",
        cause="a marker was removed though data of its transaction was left",
        breaks=_MARKERS,
        kind=Kind.SAFETY,
        within="CleanedTransactions.is_aborted",
        old="self._committed.add(batch.producer_id)",
        new="self._committed.discard(batch.producer_id)",
    ),
    mutant(
        id="KAFKA-13194",
        cause="records above the high watermark were compacted",
        breaks=_VALUES,
        kind=Kind.SAFETY,
        within="cleanable_part",
        old="bounds = [last_stable_offset, segments[-1].base_offset]",
        new="bounds = [segments[-1].base_offset]",
    ),
    mutant(
        id="KAFKA-17076",
        cause="the last batch of a pass was removed, and with it the end of what was cleaned",
        breaks=_CLEANED,
        kind=Kind.SAFETY,
        within="BatchFilter._decide",
        old="batch.next_offset == self.high_watermark",
        new="False",
    ),
    mutant(
        id="KAFKA-5490",
        cause="the last sequence of a producer went with its last batch",
        breaks="a producer may go on",
        kind=Kind.SAFETY,
        within="BatchFilter._is_last_of_its_producer",
        old="batch.last_offset == last.last_data_offset",
        new="False",
    ),
    mutant(
        id="KAFKA-8764",
        cause="a checkpoint above the end of the log was taken for true",
        breaks=_CLEANED,
        kind=Kind.LIVENESS,
        within="cleanable_part",
        old="not start_offset <= checkpoint <= log.log_end_offset",
        new="not start_offset <= checkpoint",
    ),
    mutant(
        id="KAFKA-9133",
        cause="a checkpoint below the start of the log was taken for true",
        breaks=_CLEANED,
        kind=Kind.LIVENESS,
        within="cleanable_part",
        old="not start_offset <= checkpoint <= log.log_end_offset",
        new="checkpoint > log.log_end_offset",
    ),
    mutant(
        id="KAFKA-12889",
        cause="empty segments were not joined with ones that lie far below",
        breaks=_CLEANED,
        kind=Kind.LIVENESS,
        within="_is_in_reach",
        old="segment.size == 0",
        new="False",
    ),
    mutant(
        id="KAFKA-6264",
        cause="segments were joined whose offsets do not fit one index",
        breaks=_CLEANED,
        kind=Kind.SAFETY,
        within="_is_in_reach",
        old="bound - 1 - first.base_offset <= RELATIVE_OFFSET_MAX",
        new="True",
    ),
    mutant(
        id="KAFKA-12520",
        cause="the state of producers was removed when a replacement was finished at a start",
        breaks="a producer may go on",
        kind=Kind.CONFORMITY,
        within="_replaced",
        old="parsed != (first, PRODUCER_SNAPSHOT_SUFFIX)",
        new="True",
    ),
    mutant(
        id="cleaned segment not synced",
        cause="a cleaned segment took the place of the old ones before it was durable",
        breaks=_VALUES,
        kind=Kind.SAFETY,
        within="Cleaner._cleaned",
        old="cleaned.sync_with_indexes()",
        new="",
    ),
)
