"""Records that are appended at a leader."""

from __future__ import annotations

from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, produce
from tests.support.replicated import address_of, state_of
from tests.support.waiting import wait_for

from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode


def leader(cluster: Cluster, topic: str) -> RawClient:
    return RawClient(address_of(cluster, state_of(cluster, topic).leader))


def append(cluster: Cluster, topic: str, value: bytes) -> int:
    """Write a record with acks=all, again and again until the leader takes it."""

    def write() -> int | None:
        try:
            with leader(cluster, topic) as client:
                answer = produce(client, topic, batch(value))
        except (OSError, AssertionError, KeyError):
            return None
        return answer.base_offset if answer.error_code == ErrorCode.NONE else None

    return wait_for(write, f"{value!r} is written", otherwise=lambda: state_of(cluster, topic))
