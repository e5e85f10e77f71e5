"""Bugs in the logs of topic partitions: producers, deletions, directories, recovery."""

from tests.model.mutation.mutant import conformity_bug, liveness_bug, safety_bug

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
            change = self.producers.check(batch, origin, transaction)
            self.local_log.append(batch.data, now_ms=now_ms)
            self.producers.update(batch, change)
        """,
        new="""
            change = self.producers.check(batch, origin, transaction)
            self.producers.update(batch, change)
            self.local_log.append(batch.data, now_ms=now_ms)
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
        old="self._checkpoint.is_compacted or is_durable",
        new="True",
        room="storage.log.log_loader",
    ),
)
