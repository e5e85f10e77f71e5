"""Requests whose time is over before anything is done for them."""

from __future__ import annotations

from typing import Final

from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message

TIMED_KEYS: Final = frozenset({19, 20, 37, 43, 45})
"""CreateTopics, DeleteTopics, CreatePartitions, ElectLeaders and AlterPartitionReassignments:
Kafka's controller acts on the TimeoutMs of these alone."""


def demand_time_left(request: Message) -> None:
    """Raise `RequestError` for a request that gives the controller no time at all.

    A request is decided on as soon as it has come, so that only one with a timeout of nothing or
    less is late. How long its records take to be committed is, as in Kafka, another matter.
    """
    if request.API_KEY not in TIMED_KEYS:
        return
    timeout_ms: object = getattr(request, "timeout_ms", None)
    if isinstance(timeout_ms, int) and timeout_ms <= 0:
        raise RequestError(ErrorCode.REQUEST_TIMED_OUT)
