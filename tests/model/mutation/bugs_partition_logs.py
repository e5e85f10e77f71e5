"""Bugs in the logs of partitions: producers, deletions, recovery, compaction, old segments."""

from tests.model.mutation.mutant import conformity_bug, liveness_bug, safety_bug

_VALUES = "the last value of each key stays"
_MARKERS = "a transaction's end is known as long as its data"
_CLEANED = "a log is cleaned again and again"

MUTANTS = (
    liveness_bug(
        id="KAFKA-7692",
        cause="sequences did not begin again behind the highest",
        breaks="writes are acknowledged",
        within="_check_sequence",
        old="0 if last == INT32_MAX else last + 1",
        new="last + 1",
    ),
    liveness_bug(
        id="KAFKA-6683",
        cause="producers changed before their batch was written, and the write failed",
        breaks="writes are acknowledged",
        within="UnifiedLog._write",
        old="""
            self.local_log.append_batch(batch.data, header)
            self.producers.update(batch, change)
        """,
        new="""
            self.producers.update(batch, change)
            self.local_log.append_batch(batch.data, header)
        """,
    ),
    conformity_bug(
        id="KAFKA-6554",
        cause="a batch's last offset was not compared with the number of its records",
        breaks="offsets are those of records",
        within="_check_batch",
        old="batch.last_offset_delta + 1 != count",
        new="False",
    ),
    safety_bug(
        id="KAFKA-10778",
        cause="a log was appended to after a write had failed",
        breaks="what a disk refuses is not read as something else",
        within="Poison.demand_sound",
        old="self._reason is not None",
        new="self._is_closed",
    ),
    safety_bug(
        id="KAFKA-13773",
        cause="a directory with a log that the disk had refused was marked as clean",
        breaks="recovery finds what was lost",
        within="LogDirectory.close",
        old="return is_sound",
        new="return True",
    ),
    safety_bug(
        id="KAFKA-14616",
        cause="the directory of a deleted topic was that of a new one with its name",
        breaks="records are of one topic",
        within="LogManager._hosted_id",
        old="topic_id is not None and stored_id in (None, topic_id)",
        new="topic_id is not None",
    ),
    safety_bug(
        id="KAFKA-16234",
        cause="an empty log was made for a partition whose directory was offline",
        breaks="a partition has one log",
        within="LogManager.get_or_create_log",
        old="self.has_offline_log_dirs and directory_id not in known",
        new="False",
    ),
    liveness_bug(
        id="entries of a deleted log",
        cause="a new log had the checkpoints of a deleted one of its name",
        breaks="a log starts where its records do",
        within="LogManager.get_or_create_log",
        old="directory.forget_former_log(topic_partition)",
    ),
    liveness_bug(
        id="indexes of a segment flushed too early",
        cause="the indexes of a segment that was flushed while it was appended to were not durable",
        breaks="a log opens after a power cut",
        within="SegmentList._sync_sealed",
        old="segment.end_offset >= offset",
        new="segment.end_offset > offset",
    ),
    safety_bug(
        id="a hole behind a torn segment",
        cause="a log went on with the segment behind one that had lost its end",
        breaks="committed records stay",
        within="_Loader._recover",
        old="self._checkpoint.is_compacted or is_durable or is_deleted",
        new="True",
        room="storage.log.log_loader",
    ),
    safety_bug(
        id="KAFKA-14055",
        cause="keys of transaction markers stood in the offset map beside those of users",
        breaks=_MARKERS,
        within="BatchFilter._fates",
        old="is_control = batch.is_control",
        new="is_control = False",
    ),
    safety_bug(
        id="KAFKA-8351",
        cause="an aborted transaction was not carried on into the next segment",
        breaks=_MARKERS,
        within="Cleaner._cleaned",
        old="rules.transactions.add_aborted(_aborted(log, segment.base_offset, bound))",
        new="rules.transactions.add_aborted(segment.transaction_index.entries)",
    ),
    safety_bug(
        id="KAFKA-13727",
        cause="a marker was removed though data of its transaction was left",
        breaks=_MARKERS,
        within="CleanedTransactions.is_aborted",
        old="self._committed.add(batch.producer_id)",
        new="self._committed.discard(batch.producer_id)",
    ),
    safety_bug(
        id="KAFKA-13194",
        cause="records above the high watermark were compacted",
        breaks=_VALUES,
        within="cleanable_part",
        old="bounds = [last_stable_offset, segments[-1].base_offset]",
        new="bounds = [segments[-1].base_offset]",
    ),
    safety_bug(
        id="KAFKA-17076",
        cause="the last batch of a pass was removed, and with it the end of what was cleaned",
        breaks=_CLEANED,
        within="BatchFilter._decide",
        old="batch.next_offset == self.high_watermark",
        new="False",
    ),
    safety_bug(
        id="KAFKA-5490",
        cause="the last sequence of a producer went with its last batch",
        breaks="a producer may go on",
        within="BatchFilter._is_last_of_its_producer",
        old="batch.last_offset == last.last_data_offset",
        new="False",
    ),
    liveness_bug(
        id="KAFKA-8764",
        cause="a checkpoint above the end of the log was taken for true",
        breaks=_CLEANED,
        within="cleanable_part",
        old="not start_offset <= checkpoint <= log.log_end_offset",
        new="not start_offset <= checkpoint",
    ),
    liveness_bug(
        id="KAFKA-9133",
        cause="a checkpoint below the start of the log was taken for true",
        breaks=_CLEANED,
        within="cleanable_part",
        old="not start_offset <= checkpoint <= log.log_end_offset",
        new="checkpoint > log.log_end_offset",
    ),
    liveness_bug(
        id="KAFKA-12889",
        cause="empty segments were not joined with ones that lie far below",
        breaks=_CLEANED,
        within="_is_in_reach",
        old="segment.size == 0",
        new="False",
    ),
    safety_bug(
        id="KAFKA-6264",
        cause="segments were joined whose offsets do not fit one index",
        breaks=_CLEANED,
        within="_is_in_reach",
        old="bound - 1 - first.base_offset <= RELATIVE_OFFSET_MAX",
        new="True",
    ),
    conformity_bug(
        id="KAFKA-12520",
        cause="the state of producers was removed when a replacement was finished at a start",
        breaks="a producer may go on",
        within="_replaced",
        old="parsed != (first, PRODUCER_SNAPSHOT_SUFFIX)",
        new="True",
    ),
    safety_bug(
        id="cleaned segment not synced",
        cause="a cleaned segment took the place of the old ones before it was durable",
        breaks=_VALUES,
        within="Cleaner._cleaned",
        old="cleaned.sync_with_indexes()",
    ),
    liveness_bug(
        id="producers for ever",
        cause="the producers of an open log were never forgotten",
        breaks="producer.id.expiration.ms",
        within="BrokerLogs.begin_schedule",
        old="self._tasks.append(run(self._remove_expired_producers()))",
    ),
)
