"""Mistakes in the leaders of share partitions and in their coordinators (KIP-932), as edits."""

from typing import Final

from tests.model.mutation.mutant import Edit
from tests.model.simulation.mistake import Mistake, edited

from kvorum.simulation.partitions import promises

SHARE_MISTAKES: Final = (
    Mistake(
        "a lock ends after a quarter of its time",
        promises.ONE_MEMBER,
        68,
        edited(
            Edit(
                within="Acquisition.__init__",
                old="now_ms + settings.record_lock_duration_ms",
                new="now_ms + settings.record_lock_duration_ms // 4",
            )
        ),
    ),
    Mistake(
        "an acknowledgement is answered before it is written",
        promises.ACCEPTED_ONCE,
        45,
        edited(
            Edit(
                within="LedSharePartition._decided",
                old="shield(self._runtime, self._write(write))",
                new="self._begin_write(write) or _answered(AcknowledgeResult(ErrorCode.NONE))",
            )
        ),
    ),
    Mistake(
        "a leader leaves out the stored states of records",
        promises.ACCEPTED_ONCE,
        68,
        edited(
            Edit(within="load", old="result.state_batches", new="()", room="broker.share_partition")
        ),
    ),
    Mistake(
        "a record is delivered as often as it is released",
        promises.DELIVERIES_COUNTED,
        68,
        edited(
            Edit(
                within="InFlightState._state_within_limit",
                old="self.delivery_count < settings.delivery_count_limit",
                new="True",
            )
        ),
    ),
    Mistake(
        "a new leader counts deliveries from the beginning",
        promises.DELIVERIES_COUNTED,
        118,
        edited(
            Edit(
                within="_put",
                old="stored.delivery_count",
                new="0",
                room="broker.share_partition",
            )
        ),
    ),
    Mistake(
        "a released record is archived",
        promises.DONE_FOR_A_REASON,
        166,
        edited(
            Edit(
                within="_released",
                old="last_offset < records.start_offset",
                new="True",
                room="broker.share_partition",
            )
        ),
    ),
    Mistake(
        "a share partition is kept from its end on",
        promises.START_AFTER_DONE,
        68,
        edited(
            Edit(
                within="SharePartition._data",
                old="self._records.start_offset",
                new="self._records.end_offset",
            )
        ),
    ),
    Mistake(
        "released records are not looked for",
        promises.ALL_SHARED,
        None,
        edited(
            Edit(
                within="complete",
                old="""
                    if run.state.state is RecordState.AVAILABLE:
                        records.may_have_available = True
                """,
                room="broker.share_partition",
            )
        ),
    ),
    Mistake(
        "an acknowledgement ends with its client's connection",
        promises.ALL_SHARED,
        None,
        edited(
            Edit(
                within="LedSharePartition._decided",
                old="shield(self._runtime, self._write(write))",
                new="self._write(write)",
            )
        ),
    ),
    Mistake(
        "a leader forgets the dead letters of the one before",
        promises.ALL_SHARED,
        23,
        edited(
            Edit(
                within="_put",
                old="state is not RecordState.ARCHIVING",
                new="True",
                room="broker.share_partition",
            )
        ),
    ),
    Mistake(
        "a record that a member has accepted becomes a dead letter",
        promises.LETTERS_FOR_A_REASON,
        23,
        edited(
            Edit(
                within="Acknowledgement._move",
                old="kind is AcknowledgeType.REJECT",
                new="kind is AcknowledgeType.ACCEPT",
            )
        ),
    ),
    Mistake(
        "a dead letter has a copy of the record before",
        promises.LETTERS_ARE_WHOLE,
        118,
        edited(
            Edit(
                within="OriginalRecords._collect_from",
                old="self.records[record.offset] = OriginalRecord(record.key, record.value)",
                new="self.records[record.offset + 1] = OriginalRecord(record.key, record.value)",
            )
        ),
    ),
    Mistake(
        "a dead letter is sent once",
        promises.ALL_HAVE_LETTERS,
        118,
        edited(
            Edit(
                within="ShareGroupDLQManager._written",
                old="is_last or error.code not in PASSING",
                new="True",
            )
        ),
    ),
)
