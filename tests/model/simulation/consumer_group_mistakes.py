"""Mistakes in the coordinators of consumer groups (KIP-848), as edits."""

from typing import Final

from tests.model.mutation.mutant import Edit
from tests.model.simulation.mistake import Mistake, edited, of_ledger

from kvorum.simulation.partitions import promises

CONSUMER_GROUP_MISTAKES: Final = (
    Mistake(
        "a partition is given to a member before another has dropped it",
        promises.ONE_OWNER_AT_A_TIME,
        26,
        of_ledger("owner not waited for"),
    ),
    Mistake(
        "what a member has yet to give up has no owner",
        promises.ONE_OWNER_AT_A_TIME,
        26,
        of_ledger("dropping is not owning"),
    ),
    Mistake(
        "a target that is not new has the epoch of the one before",
        promises.MEMBER_EPOCH_RISES,
        14,
        edited(
            Edit(
                within="MemberUpdate.present_target",
                old="self.group.epochs().assignment_epoch",
                new="self.group.epochs().assignment_epoch - 1",
            )
        ),
    ),
    Mistake(
        "a member may join in any epoch",
        promises.FENCED_ARE_REFUSED,
        53,
        edited(
            Edit(
                within="Heartbeat._dynamic_member",
                old="self.request.member_epoch == JOIN_EPOCH",
                new="True",
            )
        ),
    ),
    Mistake(
        "one that is not a member commits in any epoch",
        promises.FENCED_ARE_REFUSED,
        57,
        edited(
            Edit(
                within="check_consumer_commit",
                old="epoch < 0 and group.is_empty",
                new="group.members.get(member_id) is None",
            )
        ),
    ),
    Mistake(
        "a session goes on with the first heartbeat alone",
        promises.SESSION_KEPT,
        14,
        of_ledger("session of the join alone"),
    ),
    Mistake(
        "a group does not look at its topics again",
        promises.TARGETS_REACHED,
        53,
        edited(
            Edit(
                within="ModernGroup.request_metadata_refresh",
                old="self.set_metadata_deadline(0, 0)",
            )
        ),
    ),
    Mistake(
        "a new coordinator begins no sessions",
        promises.TARGETS_REACHED,
        14,
        of_ledger("sessions end with the coordinator"),
    ),
    Mistake(
        "a member that does not say what it owns counts as one that owns nothing",
        promises.ONE_OWNER_AT_A_TIME,
        48,
        of_ledger("silence is consent"),
    ),
    Mistake(
        "a heartbeat that says all is answered without the assignment",
        promises.ONE_OWNER_AT_A_TIME,
        44,
        of_ledger("KAFKA-16367"),
    ),
)
