"""Mistakes in the coordinators of groups, as edits."""

from typing import Final

from tests.model.mutation.mutant import Edit
from tests.model.simulation.mistake import Mistake, edited, of_ledger

from kvorum.simulation.partitions import promises

GROUP_MISTAKES: Final = (
    Mistake(
        "the offsets of an aborted transaction count",
        promises.OFFSETS_KNOWN,
        2,
        edited(
            Edit(
                within="OffsetStore.replay_end_transaction_marker",
                old="is_commit and is_newer",
                new="is_newer",
            )
        ),
    ),
    Mistake(
        "a rebalance does not begin a generation",
        promises.ONE_OWNER,
        3,
        edited(
            Edit(
                within="ClassicGroup.init_next_generation",
                old="self.generation_id += 1",
                new="self.generation_id = min(self.generation_id + 1, 2)",
            )
        ),
    ),
    Mistake(
        "an error of the log is answered as it is",
        promises.ANSWERS_KNOWN,
        1,
        of_ledger("KAFKA-15647"),
    ),
    Mistake(
        "a coordinator sends each member the list of all",
        promises.LEADER_KNOWS,
        1,
        edited(
            Edit(within="ClassicGroup.join_response", old="self.is_leader(member_id)", new="True")
        ),
    ),
    Mistake(
        "a rebalance waits for all members, however long",
        promises.ANSWERED_IN_TIME,
        3,
        edited(
            Edit(
                within="Rebalance._await_joins",
                old="""
                    self.shard.outbox.set_timer(
                        JoinPhase(group.group_id), group.rebalance_timeout_ms
                    )
                """,
            )
        ),
    ),
    Mistake(
        "a static member is fenced by a rebalance",
        promises.FENCED_BY_ANOTHER,
        1,
        edited(
            Edit(
                within="ClassicGroup.validated_member",
                old="existing != member_id",
                new="existing != member_id or self.is_in(ClassicGroupState.PREPARING_REBALANCE)",
            )
        ),
    ),
    Mistake(
        "a session is over after a quarter of its time",
        promises.SESSION_KEPT,
        1,
        edited(
            Edit(
                within="Rebalance.reschedule_heartbeat",
                old="member.session_timeout_ms if delay_ms is None else delay_ms",
                new="member.session_timeout_ms // 4",
            )
        ),
    ),
    Mistake(
        "an offset of an open transaction is read as stable",
        promises.STABLE_OFFSETS,
        1,
        edited(
            Edit(
                within="OffsetFetch._answer",
                old="self.require_stable and self.offsets.pending.has(group_id, where)",
                new="False",
            )
        ),
    ),
    Mistake(
        "each heartbeat is answered by a rebalance",
        promises.MEMBERS_SETTLE,
        3,
        edited(
            Edit(
                within="heartbeat",
                old="group.is_in(ClassicGroupState.PREPARING_REBALANCE)",
                new="True",
                room="groups",
            )
        ),
    ),
    Mistake(
        "a coordinator keeps its groups when it resigns",
        promises.ONE_COORDINATOR,
        3,
        edited(
            Edit(
                within="CoordinatorRuntime._resign",
                old="del self._contexts[change.partition]",
                new="return",
            )
        ),
    ),
    Mistake(
        "a group lets in more members than it may",
        promises.SIZE_KEPT,
        214,
        edited(Edit(within="Join.decide", old="not self._is_accepted()", new="False")),
    ),
    Mistake(
        "a commit without a generation may name no instance",
        promises.COMMITS_END,
        1,
        of_ledger("KAFKA-14201"),
    ),
    Mistake(
        "an operation is answered before the batch that it shares is appended",
        promises.OFFSETS_KEPT,
        1,
        of_ledger("shared batch answered"),
    ),
    Mistake(
        "a replica that was taken away goes on coordinating",
        promises.TRANSACTIONS_REST,
        38,
        of_ledger("KAFKA-16118"),
    ),
)
