"""Mistakes in what answers a request: the handlers, and the parts that they ask."""

from typing import Final

from tests.model.mutation.mutant import Edit
from tests.model.simulation.mistake import Mistake, edited

from kvorum.simulation.partitions import promises

_PRODUCE: Final = "node.handlers.produce"
_FETCH: Final = "node.handlers.fetch"
_LIST_OFFSETS: Final = "node.handlers.list_offsets"
_DELETE_RECORDS: Final = "node.handlers.delete_records"
_MARKERS: Final = "node.handlers.write_txn_markers"
_OFFSET_FETCH: Final = "node.handlers.offset_fetch"
_PROGRESS: Final = """
    FollowerFetch(
        broker_id=replica.broker_id,
        broker_epoch=replica.broker_epoch,
        leader_epoch=fetch.current_leader_epoch,
        offset=fetch.offset,
        log_start_offset=fetch.log_start_offset,
    )
"""

HANDLER_MISTAKES: Final = (
    Mistake(
        "a produce is answered before the replicas have it",
        promises.ACKNOWLEDGED,
        1,
        edited(
            Edit(
                within="answer",
                room=_PRODUCE,
                old="body.acks == ALL_IN_SYNC and appended",
                new="False",
            )
        ),
    ),
    Mistake(
        "a produce whose time is up is answered as if the replicas had it",
        promises.ACKNOWLEDGED,
        1,
        edited(
            Edit(
                within="_wait_for_replicas",
                room=_PRODUCE,
                old="ErrorCode.REQUEST_TIMED_OUT if code is None else code",
                new="ErrorCode.NONE if code is None else code",
            )
        ),
    ),
    Mistake(
        "a produce waits for its first record alone",
        promises.ACKNOWLEDGED,
        1,
        edited(
            Edit(
                within="_wait_for_replicas",
                room=_PRODUCE,
                old="one.info.last_offset + 1",
                new="one.info.first_offset",
            )
        ),
    ),
    Mistake(
        "a produce names an offset that is one too high",
        promises.ACKNOWLEDGED,
        1,
        edited(
            Edit(
                within="_Appender._append",
                room=_PRODUCE,
                old="info.first_offset",
                new="info.first_offset + 1",
            )
        ),
    ),
    Mistake(
        "a follower's fetch is taken for a consumer's",
        promises.WRITES_END,
        1,
        edited(
            Edit(
                within="_replica",
                room=_FETCH,
                old="body.replica_state.replica_id >= 0",
                new="False",
            )
        ),
    ),
    Mistake(
        "the epoch that a follower has fetched last is left out",
        promises.ONE_RECORD,
        None,
        edited(
            Edit(
                within="_sorted_out",
                room=_FETCH,
                old="max(requested.last_fetched_epoch, NO_EPOCH)",
                new="NO_EPOCH",
            )
        ),
    ),
    Mistake(
        "a follower is not told where the logs diverge",
        promises.ONE_RECORD,
        None,
        edited(
            Edit(
                within="_read_partition", room=_FETCH, old="read.diverging is not None", new="False"
            )
        ),
    ),
    Mistake(
        "a fetch does not name the aborted transactions",
        promises.READS_COMMITTED,
        1,
        edited(Edit(within="_read_partition", room=_FETCH, old="read.aborted", new="()")),
    ),
    Mistake(
        "a fetch forgets that only committed transactions are wanted",
        promises.READS_COMMITTED,
        1,
        edited(
            Edit(
                within="_records",
                room=_FETCH,
                old="IsolationLevel(body.isolation_level) if everything else _DEFAULT_ISOLATION",
                new="_DEFAULT_ISOLATION",
            )
        ),
    ),
    Mistake(
        "a client that knows of no followers may read from one",
        promises.FORMER_CLIENTS_ASK_LEADERS,
        1,
        edited(
            Edit(
                within="_records",
                room=_FETCH,
                old="request.version < FIRST_VERSION_FROM_FOLLOWERS",
                new="False",
            )
        ),
    ),
    Mistake(
        "a fetch tells the log's start as its high watermark",
        promises.ALL_COMMITTED,
        1,
        edited(
            Edit(
                within="_read_partition",
                room=_FETCH,
                old="read.high_watermark",
                new="read.log_start_offset",
            )
        ),
    ),
    Mistake(
        "a consumer reads to the end of the log",
        promises.READ_IS_COMMITTED,
        1,
        edited(
            Edit(
                within="readable_end",
                old="log.high_watermark",
                new="log.log_end_offset",
            )
        ),
    ),
    Mistake(
        "the end of a log is told as its start",
        promises.STARTS_FOLLOW,
        3,
        edited(
            Edit(
                within="_place",
                room=_LIST_OFFSETS,
                old="return TimestampAndOffset(NO_TIMESTAMP, start_offset, epoch)",
                new="return TimestampAndOffset(NO_TIMESTAMP, log.log_end_offset, epoch)",
            )
        ),
    ),
    Mistake(
        "all that is committed is deleted, whatever was asked for",
        promises.NOTHING_DELETED,
        1,
        edited(
            Edit(
                within="_delete",
                room=_DELETE_RECORDS,
                old=(
                    "requested.offset if requested.offset != HIGH_WATERMARK "
                    "else partition.log.high_watermark"
                ),
                new="partition.log.high_watermark",
            )
        ),
    ),
    Mistake(
        "a marker commits what is to be aborted",
        promises.READS_COMMITTED,
        1,
        edited(Edit(within="TransactionMarker.of", old="wanted.transaction_result", new="True")),
    ),
    Mistake(
        "an offset that has to be stable is read as it is",
        promises.STABLE_OFFSETS,
        1,
        edited(
            Edit(
                within="_offsets",
                room=_OFFSET_FETCH,
                old="request.body.require_stable",
                new="False",
            )
        ),
    ),
    Mistake(
        "a follower is taken to have one record more than it has",
        promises.COMMITTED_IN_SYNC,
        1,
        edited(
            Edit(
                within="_read_for",
                old=_PROGRESS,
                new=_PROGRESS.replace("offset=fetch.offset", "offset=fetch.offset + 1"),
            )
        ),
    ),
    Mistake(
        "a batch is written to the first partition, whatever was asked for",
        promises.ACKNOWLEDGED,
        3,
        edited(
            Edit(
                within="_checked",
                room=_PRODUCE,
                old="_Produced(topic, sent.partition_index, batch, len(sent.records))",
                new="_Produced(topic, 0, batch, len(sent.records))",
            )
        ),
    ),
    Mistake(
        "a fetch reads the first partition, whatever was asked for",
        promises.READ_IS_COMMITTED,
        5,
        edited(
            Edit(within="_sorted_out", room=_FETCH, old="find(requested.partition)", new="find(0)")
        ),
    ),
    Mistake(
        "records of the first partition are deleted, whatever was asked for",
        promises.NOTHING_DELETED,
        3,
        edited(
            Edit(
                within="_delete",
                room=_DELETE_RECORDS,
                old="hosting.partition(topic, requested.partition_index)",
                new="hosting.partition(topic, 0)",
            )
        ),
    ),
    Mistake(
        "a marker ends the transaction of the first partition",
        promises.WRITES_END,
        3,
        edited(
            Edit(
                within="_write",
                room=_MARKERS,
                old="hosting.partition(topic, where.partition)",
                new="hosting.partition(topic, 0)",
            )
        ),
    ),
    Mistake(
        "an older client's commit is for a topic with an id",
        promises.ANSWERS_KNOWN,
        8,
        edited(
            Edit(
                within="answer",
                room="node.handlers.offset_commit",
                old="request.version >= FIRST_VERSION_WITH_TOPIC_IDS",
                new="True",
            )
        ),
    ),
    Mistake(
        "an older client reads an offset that is one too high",
        promises.OFFSETS_KNOWN,
        8,
        edited(
            Edit(
                within="_response",
                room=_OFFSET_FETCH,
                old="one.committed_offset",
                new="one.committed_offset + 1",
            )
        ),
    ),
    Mistake(
        "an older client's leave names nobody",
        promises.ANSWERS_KNOWN,
        32,
        edited(
            Edit(
                within="answer",
                room="node.handlers.leave_group",
                old="[LeaveGroupRequest.MemberIdentity(body.member_id)]",
                new="body.members",
            )
        ),
    ),
    Mistake(
        "a fetch session forgets no partition",
        promises.SESSION_ANSWERED,
        13,
        edited(
            Edit(
                within="FetchSession.update",
                old="self.partitions.pop(key_of(topic.topic, topic.topic_id, index), None)",
                new="pass",
            )
        ),
    ),
    Mistake(
        "a fetch session reads from where it began",
        promises.SESSION_ANSWERED,
        13,
        edited(Edit(within="FetchSession.update", old="known.requested = asked.requested")),
    ),
)
