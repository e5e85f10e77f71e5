"""Mistakes in what partitions store of transactions and of the sequences of their producers."""

from typing import Final

from tests.model.mutation.mutant import Edit
from tests.model.simulation.mistake import Mistake, edited

from kvorum.simulation.partitions import promises

STORED_TRANSACTION_MISTAKES: Final = (
    Mistake(
        "the last stable offset is one too high",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="UnifiedLog.last_stable_offset",
                old="max(unstable, self.log_start_offset)",
                new="max(unstable, self.log_start_offset) + 1",
            )
        ),
    ),
    Mistake(
        "a fetch of committed records goes on to the high watermark",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="readable_end",
                old="log.last_stable_offset if is_committed else log.high_watermark",
                new="log.high_watermark",
            )
        ),
    ),
    Mistake(
        "an aborted transaction that began before a fetch is not named",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="find_aborted",
                old="found += search.transactions",
                new="""
                found += [one for one in search.transactions if one.first_offset >= first_offset]
                """,
            )
        ),
    ),
    Mistake(
        "a start forgets the transactions that are open",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="_decoded_entry",
                old="None if start == _NONE else start",
                new="None",
                room="storage.log",
            )
        ),
    ),
    Mistake(
        "a start indexes no transaction that was aborted",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="UnifiedLog._index_again",
                old="segment.base_offset <= aborted.last_offset < segment.end_offset",
                new="False",
            )
        ),
    ),
    Mistake(
        "a transaction is stable before its marker is replicated",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="ProducerState.first_unstable_offset",
                old="(*self._open, *self._unreplicated)",
                new="self._open",
            )
        ),
    ),
    Mistake(
        "a batch that is sent again is appended again",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="ProducerEntry.duplicate_of",
                old="self.batches",
                new="self.batches[1:]",
            ),
            Edit(
                within="_check_sequence",
                old="batch.base_sequence != expected",
                new="batch.base_sequence > expected",
                room="storage.log",
            ),
        ),
    ),
    Mistake(
        "the window of sequences is one too wide",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="ProducerEntry.duplicate_of",
                old="self.batches",
                new="self.batches[:-1]",
            ),
            Edit(
                within="_check_sequence",
                old="batch.base_sequence != expected",
                new="batch.base_sequence not in {expected, before.batches[-1].first_sequence}"
                " if before.batches else batch.base_sequence != expected",
                room="storage.log",
            ),
        ),
    ),
    Mistake(
        "the batches of a producer may come in any order",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="_appended",
                old="_check_sequence(before, batch)",
                new="pass",
                room="storage.log",
            ),
        ),
    ),
    Mistake(
        "a leader takes what a fenced producer writes",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="_appended",
                old="""
                if batch.producer_epoch < before.epoch and origin is not AppendOrigin.REPLICATION:
                    raise _fenced(before, batch)
                """,
                room="storage.log",
            ),
            Edit(
                within="_check_verification",
                old="batch.producer_epoch < before.epoch",
                new="False",
                room="storage.log",
            ),
            Edit(
                within="_check_verification",
                old="""
                if not batch.is_transactional or before.has_open_transaction(batch.producer_epoch):
                    return
                """,
                new="return",
                room="storage.log",
            ),
            Edit(
                within="ProducerState.maybe_start_transaction_verification",
                old="epoch < entry.epoch",
                new="False",
            ),
            Edit(
                within="ProducerState.maybe_start_transaction_verification",
                old="entry.has_open_transaction(epoch)",
                new="entry.transaction_start is not None",
            ),
        ),
    ),
    Mistake(
        "a batch of no transaction is taken",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="_check_verification",
                old="""
                if not batch.is_transactional or before.has_open_transaction(batch.producer_epoch):
                    return
                """,
                new="return",
                room="storage.log",
            ),
        ),
    ),
    Mistake(
        "a marker of the epoch that it ends is taken",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="_may_end",
                old="""
                    return epoch > before.epoch or (
                        epoch == before.epoch and before.transaction_start is None
                    )
                """,
                new="return epoch >= before.epoch",
            ),
        ),
    ),
    Mistake(
        "a follower indexes no transaction that was aborted",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="UnifiedLog._write",
                old="""
                    if ended.is_aborted:
                        self._append_aborted(self._aborted(ended))
                """,
                new="""
                    if ended.is_aborted and origin is not AppendOrigin.REPLICATION:
                        self._append_aborted(self._aborted(ended))
                """,
            )
        ),
    ),
)
