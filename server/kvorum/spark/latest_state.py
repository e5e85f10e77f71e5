"""Topics and partitions at the end of a metadata log, folded by Spark.

The state is the latest snapshot plus the records of the segments after its end, without the records
of transactions that were aborted or never ended. Each topic's records are folded on their own, in
the order of the log, so the work spreads over as many machines as Spark has. A log that was copied
from a running node may end with uncommitted records; they are treated as committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame, SparkSession, functions

from kvorum.spark.current_files import current_files
from kvorum.spark.files.log_file import LogFile

# Puts a snapshot's records before every record of the log: both count offsets from 0.
SNAPSHOT_POSITION: Final = -(2**62)
ENDLESS: Final = 2**63 - 1

TRANSACTION_BEGINS: Final = "BEGIN_TRANSACTION_RECORD"
TRANSACTION_ENDS: Final = "END_TRANSACTION_RECORD"
TRANSACTION_ABORTS: Final = "ABORT_TRANSACTION_RECORD"

PARTITION_FIELDS: Final = (
    "replicas array<int>, isr array<int>, removingReplicas array<int>, addingReplicas array<int>, "
    "leader int, leaderRecoveryState int, leaderEpoch int, partitionEpoch int, "
    "directories array<string>, eligibleLeaderReplicas array<int>, lastKnownElr array<int>"
)

# The effect of a ClearElrRecord on a partition, as the fields of a PartitionChangeRecord.
LISTS_EMPTIED: Final = '{"eligibleLeaderReplicas":[],"lastKnownElr":[]}'

# The id of a directory that nobody has reported yet, as records of old versions leave it out.
UNREPORTED_DIRECTORY: Final = "AAAAAAAAAAAAAAAAAAAAAA"

APPLIED_SQL: Final = """
    SELECT * FROM (
        SELECT type, topic_name, topic_id, partition_id, json,
            CASE file_kind WHEN 'snapshot' THEN offset + {snapshot_position} ELSE offset END
                AS position
        FROM {records}
        WHERE record_kind = 'metadata'
            AND (path = {snapshot} OR (file_kind = 'segment' AND offset >= {covered_until}))
    ) AS kept
    WHERE NOT EXISTS (
        SELECT 1 FROM {discarded} AS gone
        WHERE kept.position BETWEEN gone.first_offset AND gone.last_offset
    )
"""

DISCARDED_SQL: Final = """
    SELECT inline(from_json({ranges}, 'array<struct<first_offset bigint, last_offset bigint>>'))
"""

TOPICS_SQL: Final = """
    SELECT topic_name, topic_id
    FROM {applied} AS made
    WHERE type = 'TOPIC_RECORD' AND NOT EXISTS (
        SELECT 1 FROM {applied} AS removed
        WHERE removed.type = 'REMOVE_TOPIC_RECORD' AND removed.topic_id = made.topic_id
    )
"""

# A ClearElrRecord applies to every partition of one topic, or of all topics when it names none; for
# a partition it is a change that empties both lists.
EVENTS_SQL: Final = """
    SELECT topic_id, partition_id, position, type, from_json(json, {partition_fields}) AS fields
    FROM {applied}
    WHERE type IN ('PARTITION_RECORD', 'PARTITION_CHANGE_RECORD')
    UNION ALL
    SELECT made.topic_id, made.partition_id, cleared.position, cleared.type,
        from_json({lists_emptied}, {partition_fields})
    FROM {applied} AS made
    JOIN {applied} AS cleared
        ON cleared.type = 'CLEAR_ELR_RECORD' AND cleared.position > made.position
    JOIN {topics} AS topic
        ON topic.topic_id = made.topic_id
        AND cleared.topic_name IN ('', topic.topic_name)
    WHERE made.type = 'PARTITION_RECORD'
"""

# A PARTITION_RECORD contains the complete state. A change keeps the fields that it does not set,
# increments the partition epoch, and increments the leader epoch when it names a leader (even the
# same one).
FOLDED_SQL: Final = """
    SELECT topic_id, partition_id, aggregate(
        sort_array(collect_list(struct(position, type, fields))),
        from_json(CAST(NULL AS STRING), {partition_fields}),
        (state, event) -> CASE
            WHEN event.type = 'PARTITION_RECORD' THEN event.fields
            WHEN event.type = 'CLEAR_ELR_RECORD'
                AND coalesce(size(state.eligibleLeaderReplicas), 0) <= 0
                AND coalesce(size(state.lastKnownElr), 0) <= 0 THEN state
            ELSE named_struct(
                'replicas', coalesce(event.fields.replicas, state.replicas),
                'isr', coalesce(event.fields.isr, state.isr),
                'removingReplicas',
                    coalesce(event.fields.removingReplicas, state.removingReplicas),
                'addingReplicas', coalesce(event.fields.addingReplicas, state.addingReplicas),
                'leader', coalesce(event.fields.leader, state.leader),
                'leaderRecoveryState',
                    coalesce(event.fields.leaderRecoveryState, state.leaderRecoveryState),
                'leaderEpoch',
                    state.leaderEpoch + IF(event.fields.leader IS NULL, 0, 1),
                'partitionEpoch', state.partitionEpoch + 1,
                'directories', coalesce(event.fields.directories, state.directories),
                'eligibleLeaderReplicas',
                    coalesce(event.fields.eligibleLeaderReplicas, state.eligibleLeaderReplicas),
                'lastKnownElr', coalesce(event.fields.lastKnownElr, state.lastKnownElr)
            )
        END
    ) AS state
    FROM {events}
    GROUP BY topic_id, partition_id
"""

PARTITIONS_SQL: Final = """
    SELECT topic.topic_name, topic.topic_id, folded.partition_id,
        state.replicas, state.isr,
        state.removingReplicas AS removing_replicas, state.addingReplicas AS adding_replicas,
        state.leader, state.leaderEpoch AS leader_epoch, state.partitionEpoch AS partition_epoch,
        coalesce(state.leaderRecoveryState, 0) AS leader_recovery_state,
        IF(coalesce(size(state.directories), 0) > 0, state.directories,
            array_repeat({unreported}, size(state.replicas))) AS directories,
        coalesce(state.eligibleLeaderReplicas, array()) AS eligible_leader_replicas,
        coalesce(state.lastKnownElr, array()) AS last_known_elr
    FROM {folded} AS folded JOIN {topics} AS topic ON topic.topic_id = folded.topic_id
"""

COUNTED_SQL: Final = """
    SELECT topic.topic_name, topic.topic_id, count(part.partition_id) AS partition_count
    FROM {topics} AS topic LEFT JOIN {partitions} AS part ON part.topic_id = topic.topic_id
    GROUP BY topic.topic_name, topic.topic_id
"""


def topics_and_partitions(
    spark: SparkSession, *, records: DataFrame, files: Iterable[LogFile]
) -> tuple[DataFrame, DataFrame]:
    """Return the topics and the partitions at the end of the log.

    `records` is a table of the data source ``kvorum-metadata`` over `files`. Raises
    `LogFilesError` where the files do not connect.
    """
    snapshot, _ = current_files(files)
    # The table is read several times below, so it is kept in memory or on disk until the session
    # ends.
    applied = _applied_records(spark, records=records, snapshot=snapshot).persist()
    topics = _query(spark, TOPICS_SQL, applied=applied)
    events = _query(
        spark,
        EVENTS_SQL,
        applied=applied,
        topics=topics,
        partition_fields=PARTITION_FIELDS,
        lists_emptied=LISTS_EMPTIED,
    )
    folded = _query(spark, FOLDED_SQL, events=events, partition_fields=PARTITION_FIELDS)
    partitions = _query(
        spark, PARTITIONS_SQL, folded=folded, topics=topics, unreported=UNREPORTED_DIRECTORY
    )
    return _query(spark, COUNTED_SQL, topics=topics, partitions=partitions), partitions


def _query(spark: SparkSession, text: str, /, **values: DataFrame | str | int) -> DataFrame:
    """Run a query with tables and literals filled in; pyspark's own hints leave this untyped."""
    return spark.sql(text, None, **values)  # pyright: ignore[reportUnknownMemberType] - pandas, untyped


def _applied_records(
    spark: SparkSession, *, records: DataFrame, snapshot: LogFile | None
) -> DataFrame:
    """Return the metadata records that make up the state, each with its position in the order."""
    covered_until = (snapshot.offset or 0) if snapshot is not None else 0
    ranges = _discarded_ranges(_transaction_markers(records, covered_until))
    discarded = _query(spark, DISCARDED_SQL, ranges=json.dumps(ranges))
    return _query(
        spark,
        APPLIED_SQL,
        records=records,
        discarded=discarded,
        snapshot=snapshot.path if snapshot is not None else "",
        snapshot_position=SNAPSHOT_POSITION,
        covered_until=covered_until,
    )


def _transaction_markers(records: DataFrame, covered_until: int) -> list[tuple[int, str]]:
    """Return the markers of metadata transactions; they are few, so they are read at once."""
    markers = (
        records.where("file_kind = 'segment'")
        .where(functions.col("offset") >= covered_until)
        .where(functions.col("type").isin(TRANSACTION_BEGINS, TRANSACTION_ENDS, TRANSACTION_ABORTS))
        .select("offset", "type")
        .orderBy("offset")
    )
    return [(row["offset"], row["type"]) for row in markers.collect()]


def _discarded_ranges(markers: Iterable[tuple[int, str]]) -> list[dict[str, int]]:
    """Return the offsets, both ends included, of transactions that were aborted or never ended."""
    ranges: list[dict[str, int]] = []
    begun_at: int | None = None
    for offset, marker in markers:
        if marker == TRANSACTION_BEGINS:
            begun_at = offset
        elif begun_at is not None:
            if marker == TRANSACTION_ABORTS:
                ranges.append({"first_offset": begun_at, "last_offset": offset})
            begun_at = None
    if begun_at is not None:
        ranges.append({"first_offset": begun_at, "last_offset": ENDLESS})
    return ranges
