"""Mistakes in the coordinators of transactions, in what they write, and in what leaders verify."""

from typing import Final

from tests.model.mutation.mutant import Edit
from tests.model.simulation.mistake import Mistake, edited, of_ledger

from kvorum.simulation.partitions import promises

TRANSACTION_MISTAKES: Final = (
    Mistake(
        "a partition without a leader gets no marker",
        promises.TRANSACTIONS_END,
        None,
        edited(
            Edit(
                within="TransactionMarkerChannelManager._write",
                old="""
                    if leader is not None:
                        by_leader.setdefault(leader.node_id, []).append(where)
                """,
                new="""
                    if leader is not None:
                        by_leader.setdefault(leader.node_id, []).append(where)
                    else:
                        codes[where] = ErrorCode.NONE
                """,
            )
        ),
    ),
    Mistake(
        "markers are written before the outcome is committed",
        promises.HISTORY_IS_SOUND,
        None,
        of_ledger("markers before the outcome is committed"),
    ),
    Mistake(
        "a new coordinator forgets the outcomes that were decided",
        promises.TRANSACTIONS_REST,
        10,
        edited(
            Edit(
                within="TransactionCoordinatorShard.on_loaded",
                old="metadata.state.is_prepared",
                new="False",
            )
        ),
    ),
    Mistake(
        "partitions are added in any epoch",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="_require_producer",
                old="metadata.producer_epoch != wanted.producer_epoch",
                new="False",
                room="transactions",
            )
        ),
    ),
    Mistake(
        "a transaction is ended in any epoch",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="_ended_with_next_epoch",
                old="not is_current and not (is_complete and is_retry)",
                new="False",
            ),
            Edit(
                within="_ended_in_one_epoch",
                old="metadata.producer_epoch != wanted.producer_epoch",
                new="False",
            ),
        ),
    ),
    Mistake(
        "no leader verifies a transaction",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="TransactionVerification.verify",
                old="not producer.operation.supports_epoch_bump and not verified.must_be_verified",
                new="True",
            ),
            Edit(
                within="TransactionVerification.verify",
                old="VerifiedPartitions(self._is_enabled)",
                new="VerifiedPartitions(False)",
            ),
        ),
    ),
    Mistake(
        "a marker of an older transaction ends a newer one",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="_may_end",
                old="epoch >= before.epoch",
                new="True",
            ),
            Edit(
                within="_may_end",
                old="""
                    return epoch > before.epoch or (
                        epoch == before.epoch and before.transaction_start is None
                    )
                """,
                new="return True",
            ),
        ),
    ),
    Mistake(
        "a transaction is complete when its markers were tried once",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="TransactionMarkerChannelManager._end",
                old="left = {where for where in left if codes.get(where) not in _DONE}",
                new="left = set[TransactionPartition]()",
            )
        ),
    ),
    Mistake(
        "a producer begins while the transaction before is open",
        promises.HISTORY_IS_SOUND,
        10,
        edited(
            Edit(
                within="TransactionCoordinatorShard.init_producer_id",
                old="metadata.state is TransactionState.ONGOING",
                new="False",
            )
        ),
    ),
    Mistake(
        "a step is taken on what is not committed",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="TransactionalIds.committed",
                old="self._latest.get(transactional_id, self._timeline.committed_offset)",
                new="self._latest.get(transactional_id)",
            )
        ),
    ),
    Mistake(
        "a coordinator keeps the ids that have expired",
        promises.ONE_TRANSACTION_STATE,
        23,
        edited(
            Edit(
                within="TransactionCoordinatorShard.replay",
                old="self.ids.remove(transactional_id)",
                new="pass",
            )
        ),
    ),
    Mistake(
        "a coordinator that resigns goes on to write markers",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="TransactionCoordinatorService.on_image",
                old="self._markers.remove(transactional_id)",
                new="pass",
            )
        ),
    ),
    Mistake(
        "transactions do not time out",
        promises.TRANSACTIONS_REST,
        None,
        edited(
            Edit(
                within="TransactionMetadata.is_timed_out",
                old="self.start_ms + self.timeout_ms < now_ms",
                new="False",
            )
        ),
    ),
    Mistake(
        "markers that are refused count as written",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="MarkerBatch.fail",
                old="one.complete(dict.fromkeys(one.partitions, code))",
                new="one.complete(dict.fromkeys(one.partitions, ErrorCode.NONE))",
            )
        ),
    ),
    Mistake(
        "the markers of a commit abort",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="TransactionMarkerChannelManager._end",
                old="prepared.state is TransactionState.PREPARE_COMMIT",
                new="False",
            )
        ),
    ),
    Mistake(
        "an outcome that was decided is decided again",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="TransactionalIds.is_pending",
                old="""
                if latest is not None and latest.state.is_prepared:
                    return True
                """,
            ),
            Edit(
                within="_ended_with_next_epoch",
                old="metadata.state is not TransactionState.ONGOING and not is_empty_abort",
                new="False",
            ),
        ),
    ),
    Mistake(
        "markers that are tried again abort",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="TransactionMarkerChannelManager._end",
                old="left = {where for where in left if codes.get(where) not in _DONE}",
                new="""
                left = {where for where in left if codes.get(where) not in _DONE}
                marker = marker._replace(is_commit=False)
                """,
            )
        ),
    ),
    Mistake(
        "the first of several brokers alone is asked to commit",
        promises.HISTORY_IS_SOUND,
        27,
        edited(
            Edit(
                within="TransactionMarkerChannelManager._write",
                old="""[
                    self._write_at(node_id, marker, some) for node_id, some in by_leader.items()
                ]""",
                new="""[
                    self._write_at(
                        node_id, marker._replace(is_commit=marker.is_commit and number == 0), some
                    )
                    for number, (node_id, some) in enumerate(by_leader.items())
                ]""",
            )
        ),
    ),
    Mistake(
        "a marker is lost when its partition's leader changes",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="TransactionMarkerChannelManager._end",
                old="codes.get(where) not in _DONE",
                new="codes.get(where) not in {*_DONE, ErrorCode.NOT_LEADER_OR_FOLLOWER}",
            ),
        ),
    ),
    Mistake(
        "a partition that gives no answer counts as done",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="TransactionMarkerChannelManager._end",
                old="codes.get(where) not in _DONE",
                new="codes.get(where, ErrorCode.NONE) not in {*_DONE, ErrorCode.NETWORK_EXCEPTION}",
            ),
        ),
    ),
    Mistake(
        "a producer begins in the epoch of the one before it",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="TransactionMetadata.increment_producer_epoch",
                old="self.producer_epoch + 1",
                new="max(self.producer_epoch, 0)",
            ),
        ),
    ),
    Mistake(
        "an abort by the coordinator fences no producer",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="aborted_by_coordinator",
                old="metadata if has_next_epoch else metadata.fence_producer()",
                new="metadata",
            ),
        ),
    ),
    Mistake(
        "partitions that are added take the place of those before",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="TransactionMetadata.add_partitions",
                old="self.partitions.union(partitions)",
                new="frozenset(partitions)",
            ),
        ),
    ),
    Mistake(
        "a coordinator that loads forgets a partition of each transaction",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="metadata_of_record",
                old="value.transaction_partitions or ()",
                new="(value.transaction_partitions or ())[1:]",
            ),
        ),
    ),
    Mistake(
        "a transaction begins while the one before is being ended",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="TransactionalIds.is_pending",
                old="""
                if latest is not None and latest.state.is_prepared:
                    return True
                """,
                new="",
            ),
        ),
    ),
    Mistake(
        "a step is taken while the one before is not committed",
        promises.HISTORY_IS_SOUND,
        None,
        of_ledger("step on a pending id"),
    ),
    Mistake(
        "the end of an older transaction completes a newer one",
        promises.HISTORY_IS_SOUND,
        None,
        of_ledger("KAFKA-16352"),
    ),
    Mistake(
        "a new coordinator writes markers of what is not committed",
        promises.HISTORY_IS_SOUND,
        None,
        of_ledger("loaded outcome is not waited for"),
    ),
    Mistake(
        "a partition counts as added before that is committed",
        promises.HISTORY_IS_SOUND,
        None,
        of_ledger("verified before it is committed"),
    ),
    Mistake(
        "a commit is acknowledged of what was aborted",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="_ended_in_one_epoch",
                old="metadata.state is _OUTCOMES[wanted.is_commit]",
                new="metadata.state in _OUTCOMES.values()",
            ),
            Edit(
                within="_ended_with_next_epoch",
                old="is_retry and metadata.state is _OUTCOMES[wanted.is_commit]",
                new="is_retry and metadata.state in _OUTCOMES.values()",
            ),
        ),
    ),
    Mistake(
        "an abort by the coordinator commits",
        promises.HISTORY_IS_SOUND,
        None,
        edited(
            Edit(
                within="aborted_by_coordinator",
                old="""
                fenced.prepare_end(
                    is_commit=False,
                    client_version=EPOCH_OF_EACH_TRANSACTION if has_next_epoch else 0,
                    next_producer_id=_next_producer_id(metadata, generate_producer_id)
                    if has_next_epoch
                    else NO_PRODUCER,
                    now_ms=now_ms,
                )
                """,
                new="""
                fenced.prepare_end(
                    is_commit=True,
                    client_version=EPOCH_OF_EACH_TRANSACTION if has_next_epoch else 0,
                    next_producer_id=NO_PRODUCER,
                    now_ms=now_ms,
                )
                """,
            ),
        ),
    ),
)
