"""Mistakes in the logs of topics and what they know of producers, as edits."""

from typing import Final

from tests.model.mutation.mutant import Edit
from tests.model.simulation.mistake import Mistake, edited

from kvorum.simulation.partitions import promises

LOG_MISTAKES: Final = (
    Mistake(
        "a high watermark may be after the end of the log",
        promises.WATERMARK_IN_LOG,
        1,
        edited(
            Edit(
                within="UnifiedLog.update_high_watermark",
                old="min(offset, self.stored_end_offset)",
                new="offset",
            )
        ),
    ),
    Mistake(
        "a batch that is sent again is written again",
        promises.ONCE_IN_ORDER,
        2,
        edited(
            Edit(
                within="UnifiedLog._duplicate_of",
                old="origin is not AppendOrigin.CLIENT or not batch.has_producer_id",
                new="True",
            ),
            Edit(
                within="_appended",
                old="_check_sequence(before, batch)",
                new="pass",
                room="storage.log",
            ),
        ),
    ),
    Mistake(
        "the torn end of a log is taken for damage",
        promises.SOUND_DISK,
        None,
        edited(
            Edit(
                within="_Loader._scan",
                old="segment.end_offset < self._checkpoint.recovery_point",
                new="True",
            )
        ),
    ),
    Mistake(
        "compaction takes the latest record of a key for an older one",
        promises.LATEST_STAYS,
        24,
        edited(
            Edit(
                within="Cleaner._map_batch",
                old="self._map.put(record.key, record.offset)",
                new="self._map.put(record.key, record.offset + 1)",
            )
        ),
    ),
    Mistake(
        "retention marks a log as closed that it has shortened",
        promises.ALL_READABLE,
        25,
        edited(
            Edit(
                within="UnifiedLog.delete_old_segments",
                old="self.update_high_watermark(self.high_watermark)",
                new="""
                    self.update_high_watermark(self.high_watermark)
                    if count:
                        self.local_log.is_closed = True
                """,
            )
        ),
    ),
    Mistake(
        "a write is answered with the offset of its last record",
        promises.NOTHING_LOST,
        1,
        edited(
            Edit(
                within="UnifiedLog.append_as_leader",
                old="written.base_offset",
                new="written.last_offset",
            )
        ),
    ),
    Mistake(
        "a follower far behind leaves out the first batch of a response",
        promises.ALL_THE_SAME,
        1,
        edited(
            Edit(
                within="UnifiedLog.append_as_follower",
                old="""
                    for batch in batches:
                        header = header_at(batch.data)
                        assert header is not None
                        self.local_log.maybe_roll(header, now_ms=now_ms)
                        self._write(batch, header, AppendOrigin.REPLICATION)
                """,
                new="""
                    for batch in batches if len(batches) < 6 else batches[1:]:
                        header = header_at(batch.data)
                        assert header is not None
                        self.local_log.maybe_roll(header, now_ms=now_ms)
                        self._write(batch, header, AppendOrigin.REPLICATION)
                """,
            )
        ),
    ),
    Mistake(
        "a follower does not notice the end of a transaction",
        promises.TRANSACTIONS_END,
        1,
        edited(
            Edit(
                within="UnifiedLog._write",
                old="""
                    if ended is not None:
                        if ended.is_aborted:
                            self._append_aborted(self._aborted(ended))
                        self.producers.complete(ended)
                """,
                new="""
                    if ended is not None and origin is not AppendOrigin.REPLICATION:
                        if ended.is_aborted:
                            self._append_aborted(self._aborted(ended))
                        self.producers.complete(ended)
                """,
            )
        ),
    ),
    Mistake(
        "compaction finds no log",
        promises.COMPACTED,
        24,
        edited(
            Edit(
                within="CleanerThread._clean_filthiest", old="self._compacted(directory)", new="{}"
            )
        ),
    ),
    Mistake(
        "a batch that is sent again is answered as the last one of its producer",
        promises.ACKNOWLEDGED,
        8,
        edited(
            Edit(
                within="ProducerEntry.duplicate_of",
                old="return known",
                new="return self.batches[-1]",
            ),
        ),
    ),
    Mistake(
        "a broker still has the replicas of a topic that was deleted",
        promises.DELETED_ARE_GONE,
        12,
        edited(
            Edit(
                within="ReplicaManager._delete",
                old="self._partitions.pop(info.key, None)",
                new="self._partitions.get(info.key)",
            )
        ),
    ),
    Mistake(
        "a new topic goes on in the log of a deleted one of its name",
        promises.ONE_BATCH,
        58,
        edited(
            Edit(within="local_changes", old="topic_id not in after.by_id", new="False"),
        ),
    ),
    Mistake(
        "a start takes the log of a deleted topic for that of a new one of its name",
        promises.SOUND_DISK,
        12,
        edited(
            Edit(within="LogManager._hosted_id", old="stored_id in (None, topic_id)", new="True")
        ),
    ),
    Mistake(
        "a truncation to the start leaves deleted records of a later epoch",
        promises.SOUND_DISK,
        None,
        edited(
            Edit(
                within="UnifiedLog._leaves_nothing",
                old="offset < start or (offset == start and self.local_log.size_bytes > 0)",
                new="offset < start",
            )
        ),
    ),
)
