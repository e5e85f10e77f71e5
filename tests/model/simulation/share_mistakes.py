"""Mistakes in the leaders of share partitions and in their coordinators (KIP-932), as edits."""

from typing import Final

from tests.model.mutation.mutant import Edit
from tests.model.simulation.mistake import Mistake, edited, of_ledger

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
        of_ledger("share acknowledgement answered"),
    ),
    Mistake(
        "a leader leaves out the stored states of records",
        promises.ACCEPTED_ONCE,
        19,
        of_ledger("share state without its end"),
    ),
    Mistake(
        "a record is delivered as often as it is released",
        promises.DELIVERIES_COUNTED,
        68,
        of_ledger("share delivery limit ignored"),
    ),
    Mistake(
        "a new leader counts deliveries from the beginning",
        promises.DELIVERIES_COUNTED,
        118,
        of_ledger("share deliveries forgotten"),
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
        of_ledger("share release unseen"),
    ),
    Mistake(
        "an acknowledgement ends with its client's connection",
        promises.ALL_SHARED,
        None,
        of_ledger("share acknowledgement closed"),
    ),
    Mistake(
        "a leader forgets the dead letters of the one before",
        promises.ALL_SHARED,
        23,
        of_ledger("dead letters of the leader before"),
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
        of_ledger("dead letter of another record"),
    ),
    Mistake(
        "a dead letter is sent once",
        promises.ALL_HAVE_LETTERS,
        118,
        of_ledger("dead letter sent once"),
    ),
    Mistake(
        "the locks of all records end together",
        promises.ONE_MEMBER,
        84,
        of_ledger("share locks end together"),
    ),
    Mistake(
        "each dead letter is archived by a write of its own",
        promises.ALL_SHARED,
        103,
        of_ledger("dead letters one by one"),
    ),
)
