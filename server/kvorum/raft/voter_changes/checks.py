"""What must hold before the voters may change once more.

One change at a time, each on a set that is committed: then every majority of the old set and every
one of the new share a voter. A leader must have committed something of its own epoch first, so
that no change of an earlier leader can come back.
"""

from __future__ import annotations

from typing import NamedTuple

from kvorum.raft.messages import Error
from kvorum.raft.replica import Replica
from kvorum.raft.voter_changes.ending import poll_change
from kvorum.raft.voter_changes.texts import offset_text

RECONFIGURABLE_KRAFT_VERSION = 1
"""The kraft.version from which on the voters are in the log and can change."""


class Refusal(NamedTuple):
    """Why a change is not made; `message` is Kafka's text."""

    error: Error
    message: str | None = None


def refuse_while_changing(replica: Replica, now: float) -> Refusal | None:
    """Return why there can be no change now: another is under way, or nothing is committed yet."""
    poll_change(replica, now)
    if replica.change is not None:
        return Refusal(
            Error.REQUEST_TIMED_OUT,
            "Request timed out waiting for leader to handle previous voter change request",
        )
    if replica.high_watermark is None:
        return Refusal(
            Error.REQUEST_TIMED_OUT,
            "Request timed out waiting for leader to establish HWM and fence previous voter "
            "changes",
        )
    return None


def refuse_unless_settled(replica: Replica, what: str) -> Refusal | None:
    """Return why the voters cannot change: they are not in the log, or not committed.

    `what` is the kind of change, "adding" or "removing".
    """
    history = replica.history
    version = history.kraft_version
    if version < RECONFIGURABLE_KRAFT_VERSION:
        return Refusal(
            Error.UNSUPPORTED_VERSION,
            f"Cluster doesn't support {what} voter because the kraft.version feature is {version}",
        )
    if not replica.are_voters_committed:
        return Refusal(
            Error.REQUEST_TIMED_OUT,
            "Request timed out waiting for voters to commit the latest voter change at "
            f"{offset_text(history.voters_offset)} with HWM {replica.high_watermark}",
        )
    return None
