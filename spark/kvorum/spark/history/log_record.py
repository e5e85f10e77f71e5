"""A record of the metadata log, decoded, as the fold reads it."""

from __future__ import annotations

from typing import NamedTuple

from kvorum.wire.primitives import Message


class LogRecord(NamedTuple):
    """A metadata record, or the message of a control record, with its place in the log.

    `epoch` is the leader epoch of the record's batch. `timestamp_ms` is the time when the leader
    created the batch, in milliseconds since 1970. `version` is the version of the message.
    """

    offset: int
    epoch: int
    timestamp_ms: int
    message: Message
    version: int
