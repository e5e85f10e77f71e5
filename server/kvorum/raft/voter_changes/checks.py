"""The checks before a change of the voters.

There is one change at a time, and each begins from a committed set: then every majority of the old
set shares a voter with every majority of the new one. A leader must have committed a record of its
own epoch first, so that no change of an earlier leader can come back.
"""

from __future__ import annotations

from typing import NamedTuple

from kvorum.raft.messages import Error
from kvorum.raft.replica import Replica
from kvorum.raft.voter_changes.completion import poll_change
from kvorum.raft.voter_changes.texts import offset_text

RECONFIGURABLE_KRAFT_VERSION = 1
"""The lowest kraft.version at which the voters are in the log and can change."""

UNEXPLAINED = ""
"""The message of an error that Kafka sends without text: the field's default, an empty string."""


class Refusal(NamedTuple):
    """Why a change is not made; `message` is Kafka's text."""

    error: Error
    message: str = UNEXPLAINED


def refuse_while_changing(replica: Replica, now: float) -> Refusal | None:
    """Return why no change can begin: another is under way, or nothing is committed yet."""
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
